// Clients does with an API server what Go programs do with it, by client-go and controller-runtime as they are, and says
// of each piece whether it went well: one JSON line with its name and, if it did not, why.
//
//	clients KUBECONFIG [NAME...]
//
// Without names, everything. Every piece has a namespace of its own and leaves the rest of the server alone.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const patience = 60 * time.Second

// world is what a piece has: clients, all of the default kind, and a namespace.
type world struct {
	context.Context
	config    *rest.Config
	typed     kubernetes.Interface
	dynamic   dynamic.Interface
	defs      apiextensions.Interface
	namespace string
	sent      *sent
}

// sent notes in which form bodies left the program, whichever client sent them.
type sent struct {
	sync.Mutex
	forms map[string]int
}

func (s *sent) through(next http.RoundTripper) http.RoundTripper {
	return noting(func(request *http.Request) (*http.Response, error) {
		if request.Body != nil && request.Body != http.NoBody {
			s.Lock()
			s.forms[request.Header.Get("Content-Type")]++
			s.Unlock()
		}
		return next.RoundTrip(request)
	})
}

type noting func(*http.Request) (*http.Response, error)

func (n noting) RoundTrip(request *http.Request) (*http.Response, error) { return n(request) }

type piece struct {
	name string
	do   func(*world) error
}

func main() {
	klog.SetOutput(os.Stderr)
	ctrl.SetLogger(klog.Background())
	pieces := slices.Concat(typedPieces, followingPieces, customPieces, runtimePieces)
	failed := 0
	for _, each := range pieces {
		if len(os.Args) > 2 && !slices.Contains(os.Args[2:], each.name) {
			continue
		}
		line := map[string]string{"name": each.name}
		if err := attempt(os.Args[1], each); err != nil {
			line["error"] = err.Error()
			failed++
		}
		shown, _ := json.Marshal(line)
		fmt.Println(string(shown))
	}
	if failed > 0 {
		os.Exit(1)
	}
}

func attempt(kubeconfig string, what piece) (failure error) {
	defer func() {
		if told := recover(); told != nil {
			failure = fmt.Errorf("panic: %v", told)
		}
	}()
	w, err := newWorld(kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.Context = ctx
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}
	made, err := w.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	w.namespace = made.Name
	defer w.typed.CoreV1().Namespaces().Delete(context.Background(), made.Name, metav1.DeleteOptions{})
	return what.do(w)
}

func newWorld(kubeconfig string) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 500, 500
	config.UserAgent = "go-clients"
	seen := &sent{forms: map[string]int{}}
	config.Wrap(seen.through)
	w := &world{config: config, sent: seen}
	if w.typed, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	w.defs, err = apiextensions.NewForConfig(config)
	return w, err
}

// eventually asks until the answer is yes, or says what was waited for.
func (w *world) eventually(what string, ask func() (bool, error)) error {
	err := wait.PollUntilContextCancel(w, 50*time.Millisecond, true, func(context.Context) (bool, error) { return ask() })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func same(what string, expected, found any) error {
	if fmt.Sprintf("%v", expected) != fmt.Sprintf("%v", found) {
		return fmt.Errorf("%s: expected %v, found %v", what, expected, found)
	}
	return nil
}

// first returns the first error that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func says(err error, part string) error {
	if err == nil || !strings.Contains(err.Error(), part) {
		return fmt.Errorf("expected an error with %q, found %v", part, err)
	}
	return nil
}
