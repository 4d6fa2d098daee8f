package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

var followingPieces = []piece{
	{"a shared informer sees everything once", sharedInformer},
	{"a dynamic informer and one of metadata see the same", otherInformers},
	{"a leader is elected, and another after it", election},
	{"events are recorded and repeated ones counted", recorded},
	{"kinds are found by discovery", kinds},
}

// noted is what handlers were told, by any number of goroutines.
type noted struct {
	sync.Mutex
	told []string
}

func (n *noted) add(word string) {
	n.Lock()
	defer n.Unlock()
	n.told = append(n.told, word)
}

func (n *noted) is(expected string) func() (bool, error) {
	return func() (bool, error) {
		n.Lock()
		defer n.Unlock()
		if len(n.told) > 20 {
			return false, fmt.Errorf("told %v", n.told)
		}
		return fmt.Sprint(n.told) == expected, nil
	}
}

func (n *noted) handler() cache.ResourceEventHandlerFuncs {
	name := func(thing any) string {
		if left, is := thing.(cache.DeletedFinalStateUnknown); is {
			thing = left.Obj
		}
		found, err := meta.Accessor(thing)
		if err != nil {
			return err.Error()
		}
		return found.GetName()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(thing any) { n.add("+" + name(thing)) },
		UpdateFunc: func(_, thing any) { n.add("~" + name(thing)) },
		DeleteFunc: func(thing any) { n.add("-" + name(thing)) },
	}
}

// live makes, changes and deletes one object while others look.
func live(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	made := configMap("b", nil)
	made.Labels = map[string]string{"mine": "yes"}
	if _, err := maps.Create(w, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := maps.Patch(w, "b", types.MergePatchType, []byte(`{"data":{"k":"v"}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	return maps.Delete(w, "b", metav1.DeleteOptions{})
}

func before(w *world) error {
	made := configMap("a", map[string]string{"k": "v"})
	made.Labels = map[string]string{"mine": "yes"}
	_, err := w.typed.CoreV1().ConfigMaps(w.namespace).Create(w, made, metav1.CreateOptions{})
	return err
}

func mine(options *metav1.ListOptions) { options.LabelSelector = "mine=yes" }

const aLife = "[+a +b ~b -b]"

func sharedInformer(w *world) error {
	if err := before(w); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(w.typed, 0, informers.WithNamespace(w.namespace),
		informers.WithTweakListOptions(mine))
	informer, told := factory.Core().V1().ConfigMaps(), &noted{}
	err := informer.Informer().AddIndexers(cache.Indexers{"data": func(thing any) ([]string, error) {
		return []string{thing.(*corev1.ConfigMap).Data["k"]}, nil
	}})
	if err != nil {
		return err
	}
	if _, err := informer.Informer().AddEventHandler(told.handler()); err != nil {
		return err
	}
	factory.Start(w.Done())
	factory.WaitForCacheSync(w.Done())
	if err := live(w); err != nil {
		return err
	}
	if err := w.eventually("the handler", told.is(aLife)); err != nil {
		return fmt.Errorf("%w: %v", err, told.told)
	}
	listed, err := informer.Lister().ConfigMaps(w.namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	indexed, err := informer.Informer().GetIndexer().ByIndex("data", "v")
	return first(err, same("listed", 1, len(listed)), same("indexed", 1, len(indexed)))
}

func otherInformers(w *world) error {
	if err := before(w); err != nil {
		return err
	}
	which := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	partial, err := metadata.NewForConfig(w.config)
	if err != nil {
		return err
	}
	whole := dynamicinformer.NewFilteredDynamicSharedInformerFactory(w.dynamic, 0, w.namespace, mine)
	parts := metadatainformer.NewFilteredSharedInformerFactory(partial, 0, w.namespace, mine)
	told, toldParts := &noted{}, &noted{}
	if _, err := whole.ForResource(which).Informer().AddEventHandler(told.handler()); err != nil {
		return err
	}
	if _, err := parts.ForResource(which).Informer().AddEventHandler(toldParts.handler()); err != nil {
		return err
	}
	whole.Start(w.Done())
	parts.Start(w.Done())
	whole.WaitForCacheSync(w.Done())
	parts.WaitForCacheSync(w.Done())
	if err := live(w); err != nil {
		return err
	}
	if err := w.eventually("the dynamic one", told.is(aLife)); err != nil {
		return fmt.Errorf("%w: %v", err, told.told)
	}
	if err := w.eventually("that of metadata", toldParts.is(aLife)); err != nil {
		return fmt.Errorf("%w: %v", err, toldParts.told)
	}
	return nil
}

// election has two candidates; the first gives up, and the second leads.
func election(w *world) error {
	leads := make(chan string, 2)
	candidate := func(ctx context.Context, name string) error {
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, w.namespace, "leader", w.typed.CoreV1(),
			w.typed.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		if err != nil {
			return err
		}
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 200 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- name },
				OnStoppedLeading: func() {},
			},
		})
		return nil
	}
	firstRun, giveUp := context.WithCancel(w)
	if err := candidate(firstRun, "one"); err != nil {
		return err
	}
	if err := leader(w, leads, "one"); err != nil {
		return err
	}
	secondRun, end := context.WithCancel(w)
	defer end()
	if err := candidate(secondRun, "two"); err != nil {
		return err
	}
	giveUp()
	if err := leader(w, leads, "two"); err != nil {
		return err
	}
	lease, err := w.typed.CoordinationV1().Leases(w.namespace).Get(w, "leader", metav1.GetOptions{})
	return first(err, same("holder", "two", *lease.Spec.HolderIdentity), same("transitions", 1, *lease.Spec.LeaseTransitions))
}

func leader(w *world, leads chan string, expected string) error {
	select {
	case name := <-leads:
		return same("leader", expected, name)
	case <-w.Done():
		return fmt.Errorf("%s did not become leader", expected)
	}
}

func recorded(w *world) error {
	about, err := w.typed.CoreV1().Pods(w.namespace).Create(w, pod("one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.typed.CoreV1().Events(w.namespace)})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "go-clients"})
	for range 3 {
		recorder.Eventf(about, corev1.EventTypeWarning, "Tried", "tried %s", "again")
	}
	return w.eventually("one event of three", func() (bool, error) {
		found, err := w.typed.CoreV1().Events(w.namespace).List(w, metav1.ListOptions{
			FieldSelector: "involvedObject.name=one,reason=Tried,type=Warning"})
		return err == nil && len(found.Items) == 1 && found.Items[0].Count == 3, err
	})
}

func kinds(w *world) error {
	client := w.typed.Discovery()
	groups, resources, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	preferred, err := client.ServerPreferredResources()
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	mapping, err := restmapper.NewShortcutExpander(mapper, client, nil).RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
	if err != nil {
		return err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	document, err := paths["apis/apps/v1"].Schema("application/json")
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	return first(err,
		same("found something", true, len(groups) > 10 && len(resources) > 10 && len(preferred) > 10 && len(document) > 1000),
		same("plural", "deployments", mapping.Resource.Resource), same("major version", "1", version.Major))
}
