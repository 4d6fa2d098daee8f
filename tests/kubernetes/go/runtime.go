package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var runtimePieces = []piece{
	{"controller-runtime's client does what it can", runtimeClient},
	{"a controller with leader election brings up what its kind asks for, and cleans up", controller},
}

func runtimeClient(w *world) error {
	c, err := client.New(w.config, client.Options{})
	if err != nil {
		return err
	}
	d := deployment("d")
	d.Namespace = w.namespace
	dry := d.DeepCopy()
	if err := first(client.NewDryRunClient(c).Create(w, dry), c.Create(w, d)); err != nil {
		return err
	}
	before := d.DeepCopy()
	d.Labels = map[string]string{"merge": "yes"}
	if err := c.Patch(w, d, client.MergeFrom(before)); err != nil {
		return err
	}
	before = d.DeepCopy()
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "two", Image: "y"})
	if err := c.Patch(w, d, client.StrategicMergeFrom(before)); err != nil {
		return err
	}
	before = d.DeepCopy()
	d.Status.ObservedGeneration = d.Generation
	if err := c.Status().Patch(w, d, client.MergeFrom(before)); err != nil {
		return err
	}
	asked := &autoscaling.Scale{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: w.namespace},
		Spec: autoscaling.ScaleSpec{Replicas: 3}}
	if err := c.SubResource("scale").Update(w, d, client.WithSubResourceBody(asked)); err != nil {
		return err
	}
	configuration := coreapply.ConfigMap("applied", w.namespace).WithData(map[string]string{"k": "v"})
	if err := c.Apply(w, configuration, client.FieldOwner("runtime"), client.ForceOwnership); err != nil {
		return err
	}
	updated := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "applied", Namespace: w.namespace}}
	result, err := controllerutil.CreateOrUpdate(w, c, updated, func() error { updated.Data["more"] = "yes"; return nil })
	if err != nil {
		return err
	}
	stale := updated.DeepCopy()
	stale.ResourceVersion = "1"
	locked := client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(w, updated.DeepCopy(), locked); !apierrors.IsConflict(err) {
		return fmt.Errorf("a patch of an old revision: %v", err)
	}
	var list corev1.ConfigMapList
	if err := c.List(w, &list, client.InNamespace(w.namespace), client.MatchingFields{"metadata.name": "applied"}); err != nil {
		return err
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := c.Get(w, client.ObjectKeyFromObject(d), partial); err != nil {
		return err
	}
	if err := c.DeleteAllOf(w, &appsv1.Deployment{}, client.InNamespace(w.namespace), client.MatchingLabels{"merge": "yes"},
		client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	gone := c.Get(w, client.ObjectKeyFromObject(d), &appsv1.Deployment{})
	return first(
		same("result", controllerutil.OperationResultUpdated, result), same("listed", 1, len(list.Items)),
		same("labels", "map[merge:yes]", partial.Labels), same("gone", true, apierrors.IsNotFound(gone)))
}

const finalizer = "example.com/clean-up"

// reconciler keeps a ConfigMap per Thing, counts it in the status, and takes a finalizer off when the Thing goes.
type reconciler struct {
	client.Client
	kind     schema.GroupVersionKind
	recorder events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(r.kind)
	if err := r.Get(ctx, request.NamespacedName, found); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if found.GetDeletionTimestamp() != nil {
		controllerutil.RemoveFinalizer(found, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, found))
	}
	if controllerutil.AddFinalizer(found, finalizer) {
		return ctrl.Result{}, r.Update(ctx, found)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: found.GetName(), Namespace: found.GetNamespace()}}
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		word, _, _ := unstructured.NestedString(found.Object, "spec", "word")
		owned.Data = map[string]string{"word": word}
		return controllerutil.SetControllerReference(found, owned, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result == controllerutil.OperationResultCreated {
		r.recorder.Eventf(found, owned, corev1.EventTypeNormal, "Made", "Make", "made %s", owned.Name)
	}
	before := found.DeepCopy()
	if err := unstructured.SetNestedField(found.Object, int64(1), "status", "replicas"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, found, client.MergeFrom(before))
}

func controller(w *world) error {
	which, err := defined(w)
	if err != nil {
		return err
	}
	defer w.defs.ApiextensionsV1().CustomResourceDefinitions().Delete(context.Background(), "things."+which.Group, metav1.DeleteOptions{})
	manager, err := ctrl.NewManager(w.config, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "controller", LeaderElectionNamespace: w.namespace,
		LeaderElectionReleaseOnCancel: true,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller:                    config.Controller{SkipNameValidation: ptr.To(true)},
		GracefulShutdownTimeout:       ptr.To(5 * time.Second),
	})
	if err != nil {
		return err
	}
	kind := schema.GroupVersionKind{Group: which.Group, Version: "v1", Kind: "Thing"}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(kind)
	r := &reconciler{manager.GetClient(), kind, manager.GetEventRecorder("go-clients")}
	if err := ctrl.NewControllerManagedBy(manager).For(watched).Owns(&corev1.ConfigMap{}).Complete(r); err != nil {
		return err
	}
	running, stop := context.WithCancel(w)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	if err := controlled(w, which); err != nil {
		stop()
		return err
	}
	stop()
	return <-ended
}

func controlled(w *world, which schema.GroupVersionResource) error {
	things, maps := w.dynamic.Resource(which).Namespace(w.namespace), w.typed.CoreV1().ConfigMaps(w.namespace)
	made := thing(which.Group, "one")
	made.Object["spec"] = map[string]any{"word": "first"}
	if _, err := things.Create(w, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	has := func(word string) func() (bool, error) {
		return func() (bool, error) {
			owned, err := maps.Get(w, "one", metav1.GetOptions{})
			found, other := things.Get(w, "one", metav1.GetOptions{})
			if err != nil || other != nil {
				return false, client.IgnoreNotFound(err)
			}
			count, _, _ := unstructured.NestedInt64(found.Object, "status", "replicas")
			return owned.Data["word"] == word && count == 1, nil
		}
	}
	if err := w.eventually("what it owns", has("first")); err != nil {
		return err
	}
	if err := maps.Delete(w, "one", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := w.eventually("what it owns, again", has("first")); err != nil {
		return err
	}
	if err := w.eventually("its event", func() (bool, error) {
		list, err := w.typed.EventsV1().Events(w.namespace).List(w, metav1.ListOptions{FieldSelector: "reason=Made"})
		return err == nil && len(list.Items) > 0 && list.Items[0].Regarding.Name == "one", err
	}); err != nil {
		return err
	}
	foreground := metav1.DeletePropagationForeground
	if err := things.Delete(w, "one", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		return err
	}
	return w.eventually("its end", func() (bool, error) {
		left, err := things.Get(w, "one", metav1.GetOptions{})
		if err == nil && len(left.GetFinalizers()) > 2 {
			return false, fmt.Errorf("finalizers: %v", left.GetFinalizers())
		}
		return apierrors.IsNotFound(err), nil
	})
}
