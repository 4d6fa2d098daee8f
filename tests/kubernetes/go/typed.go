package main

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingapply "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

var typedPieces = []piece{
	{"typed objects are made, read, changed and deleted as protobuf", objects},
	{"refusals are the errors that Go knows", refusals},
	{"a conflict is solved by trying again", conflicts},
	{"lists come in pages", pages},
	{"a watch goes on from where it ended", resume},
	{"all four patches", patches},
	{"status is written apart", status},
	{"scale is read, written, patched and applied", scale},
	{"each propagation of a deletion", propagation},
	{"a collection is deleted by selector", collection},
	{"accounts get tokens and reviews answer", reviews},
	{"an eviction waits for its budget", eviction},
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func pod(name string) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			SchedulerName:                 "nobody", // who would write its status in between
			Containers: []corev1.Container{{Name: "main", Image: "example.com/x:1",
				Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("").Spec}
	template.Spec.TerminationGracePeriodSeconds = nil
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: template},
	}
}

func objects(w *world) error {
	pods := w.typed.CoreV1().Pods(w.namespace)
	made, err := pods.Create(w, pod("one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Labels["more"] = "yes"
	changed, err := pods.Update(w, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	read, err := pods.Get(w, "one", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := pods.Delete(w, "one", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(read.UID))}); err != nil {
		return err
	}
	_, gone := pods.Get(w, "one", metav1.GetOptions{})
	if !apierrors.IsNotFound(gone) {
		return fmt.Errorf("after its deletion: %v", gone)
	}
	return first(
		same("label", "yes", read.Labels["more"]),
		same("revision", changed.ResourceVersion, read.ResourceVersion),
		same("quantity", "10m", read.Spec.Containers[0].Resources.Requests.Cpu()),
		same("forms of bodies", "map[application/vnd.kubernetes.protobuf:4]", w.sent.forms),
	)
}

func refusals(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	if _, err := maps.Create(w, configMap("a", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, twice := maps.Create(w, configMap("a", nil), metav1.CreateOptions{})
	_, invalid := maps.Create(w, configMap("A b", nil), metav1.CreateOptions{})
	_, missing := maps.Get(w, "none", metav1.GetOptions{})
	stale := configMap("a", map[string]string{"k": "v"})
	stale.ResourceVersion = "1"
	_, conflict := maps.Update(w, stale, metav1.UpdateOptions{})
	_, space := w.typed.CoreV1().ConfigMaps("no-such-space").Create(w, configMap("a", nil), metav1.CreateOptions{})
	for what, right := range map[string]bool{
		"twice":    apierrors.IsAlreadyExists(twice),
		"invalid":  apierrors.IsInvalid(invalid) && apierrors.HasStatusCause(invalid, metav1.CauseTypeFieldValueInvalid),
		"missing":  apierrors.IsNotFound(missing),
		"conflict": apierrors.IsConflict(conflict),
		"space":    apierrors.IsNotFound(space),
	} {
		if !right {
			return fmt.Errorf("%s: twice %v, invalid %v, missing %v, conflict %v, space %v",
				what, twice, invalid, missing, conflict, space)
		}
	}
	return nil
}

func conflicts(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	if _, err := maps.Create(w, configMap("a", map[string]string{"n": ""}), metav1.CreateOptions{}); err != nil {
		return err
	}
	// However slow the machine is: of those that try, one wins each time.
	patience := retry.DefaultRetry
	patience.Steps, patience.Jitter = 100, 1
	done := make(chan error, 5)
	for range 5 {
		go func() {
			done <- retry.RetryOnConflict(patience, func() error {
				found, err := maps.Get(w, "a", metav1.GetOptions{})
				if err != nil {
					return err
				}
				found.Data["n"] += "x"
				_, err = maps.Update(w, found, metav1.UpdateOptions{})
				return err
			})
		}()
	}
	for range 5 {
		if err := <-done; err != nil {
			return err
		}
	}
	found, err := maps.Get(w, "a", metav1.GetOptions{})
	return first(err, same("writes", "xxxxx", found.Data["n"]))
}

func pages(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for at := range 25 {
		made := configMap(fmt.Sprintf("m-%02d", at), nil)
		made.Labels = map[string]string{"in": "pages"}
		if _, err := maps.Create(w, made, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	options := metav1.ListOptions{LabelSelector: "in=pages", Limit: 7}
	var names, sizes []string
	for {
		page, err := maps.List(w, options)
		if err != nil {
			return err
		}
		sizes = append(sizes, fmt.Sprint(len(page.Items)))
		for _, each := range page.Items {
			names = append(names, each.Name)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	return first(
		same("pages", "7 7 7 4", strings.Join(sizes, " ")),
		same("names", true, slices.IsSorted(names) && len(slices.Compact(names)) == 25),
	)
}

func resume(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	selected := metav1.ListOptions{LabelSelector: "seen=yes", AllowWatchBookmarks: true}
	list, err := maps.List(w, selected)
	if err != nil {
		return err
	}
	last := list.ResourceVersion
	var told []string
	for round := range 3 {
		for _, name := range []string{"a", "b"} {
			made := configMap(fmt.Sprintf("%s%d", name, round), nil)
			made.Labels = map[string]string{"seen": "yes"}
			if _, err := maps.Create(w, made, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if err := maps.Delete(w, fmt.Sprintf("a%d", round), metav1.DeleteOptions{}); err != nil {
			return err
		}
		options := selected
		options.ResourceVersion = last
		stream, err := maps.Watch(w, options)
		if err != nil {
			return err
		}
		for event := range stream.ResultChan() {
			if event.Type == watch.Bookmark {
				continue
			}
			thing, right := event.Object.(*corev1.ConfigMap)
			if !right {
				return fmt.Errorf("in the watch: %v", event.Object)
			}
			told = append(told, string(event.Type[:1])+thing.Name)
			last = thing.ResourceVersion
			if len(told)%3 == 0 {
				break
			}
		}
		stream.Stop()
	}
	return same("events", "Aa0 Ab0 Da0 Aa1 Ab1 Da1 Aa2 Ab2 Da2", strings.Join(told, " "))
}

func patches(w *world) error {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	if _, err := deployments.Create(w, deployment("d"), metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, each := range []struct {
		form types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"add","path":"/metadata/labels","value":{"json":"yes"}}]`},
		{types.MergePatchType, `{"metadata":{"labels":{"merge":"yes"}}}`},
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"two","image":"y"}]}}}}`},
	} {
		if _, err := deployments.Patch(w, "d", each.form, []byte(each.body), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", each.form, err)
		}
	}
	wanted := appsapply.Deployment("d", w.namespace).WithSpec(appsapply.DeploymentSpec().WithTemplate(
		coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithContainers(
			coreapply.Container().WithName("main").WithImage("other")))))
	_, conflict := deployments.Apply(w, wanted, metav1.ApplyOptions{FieldManager: "applier"})
	if !apierrors.IsConflict(conflict) || !apierrors.HasStatusCause(conflict, metav1.CauseTypeFieldManagerConflict) {
		return fmt.Errorf("apply against another owner: %v", conflict)
	}
	found, err := deployments.Apply(w, wanted, metav1.ApplyOptions{FieldManager: "applier", Force: true})
	if err != nil {
		return err
	}
	extracted, err := appsapply.ExtractDeployment(found, "applier")
	if err != nil {
		return err
	}
	images := map[string]string{}
	for _, each := range found.Spec.Template.Spec.Containers {
		images[each.Name] = each.Image
	}
	return first(
		same("labels", "map[json:yes merge:yes]", found.Labels),
		same("images", "map[main:other two:y]", images),
		same("extracted", "other", *extracted.Spec.Template.Spec.Containers[0].Image),
	)
}

func status(w *world) error {
	pods := w.typed.CoreV1().Pods(w.namespace)
	made, err := pods.Create(w, pod("one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Phase, made.Spec.NodeName = corev1.PodRunning, "not-taken"
	written, err := pods.UpdateStatus(w, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	applied, err := pods.ApplyStatus(w, coreapply.Pod("one", w.namespace).WithStatus(coreapply.PodStatus().
		WithConditions(coreapply.PodCondition().WithType("example.com/Fit").WithStatus(corev1.ConditionTrue))),
		metav1.ApplyOptions{FieldManager: "applier"})
	if err != nil {
		return err
	}
	kept, err := pods.Update(w, func() *corev1.Pod { c := applied.DeepCopy(); c.Status.Phase = "Failed"; return c }(), metav1.UpdateOptions{})
	return first(err,
		same("phase", corev1.PodRunning, written.Status.Phase),
		same("node", "", written.Spec.NodeName),
		same("condition", "example.com/Fit", applied.Status.Conditions[len(applied.Status.Conditions)-1].Type),
		same("phase after an update", corev1.PodRunning, kept.Status.Phase))
}

func scale(w *world) error {
	deployments := w.typed.AppsV1().Deployments(w.namespace)
	if _, err := deployments.Create(w, deployment("d"), metav1.CreateOptions{}); err != nil {
		return err
	}
	found, err := deployments.GetScale(w, "d", metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.Spec.Replicas, found.ResourceVersion = 2, "" // the controller writes, too
	written, err := deployments.UpdateScale(w, "d", found, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	applied, err := deployments.ApplyScale(w, "d", autoscalingapply.Scale().WithName("d").WithNamespace(w.namespace).
		WithSpec(autoscalingapply.ScaleSpec().WithReplicas(3)), metav1.ApplyOptions{FieldManager: "applier", Force: true})
	if err != nil {
		return err
	}
	whole, err := deployments.Patch(w, "d", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
	if err == nil {
		whole, err = deployments.Get(w, "d", metav1.GetOptions{})
	}
	return first(err, same("selector", "app=d", found.Status.Selector), same("written", 2, written.Spec.Replicas),
		same("applied", 3, applied.Spec.Replicas), same("patched", 0, *whole.Spec.Replicas))
}

// propagation has an owner and something it owns, three times.
func propagation(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for _, how := range []metav1.DeletionPropagation{
		metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground,
	} {
		name := strings.ToLower(string(how))
		owner, err := maps.Create(w, configMap(name, nil), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		reference := metaapply.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName(name).
			WithUID(owner.UID).WithBlockOwnerDeletion(true).WithController(true)
		owned := coreapply.ConfigMap(name+"-owned", w.namespace).WithOwnerReferences(reference)
		if _, err := maps.Apply(w, owned, metav1.ApplyOptions{FieldManager: "applier"}); err != nil {
			return err
		}
		if err := maps.Delete(w, name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
			return err
		}
		err = w.eventually(string(how), func() (bool, error) {
			_, owner := maps.Get(w, name, metav1.GetOptions{})
			left, owned := maps.Get(w, name+"-owned", metav1.GetOptions{})
			if how == metav1.DeletePropagationOrphan {
				return apierrors.IsNotFound(owner) && owned == nil && len(left.OwnerReferences) == 0, nil
			}
			return apierrors.IsNotFound(owner) && apierrors.IsNotFound(owned), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func collection(w *world) error {
	maps := w.typed.CoreV1().ConfigMaps(w.namespace)
	for _, name := range []string{"a", "b", "c"} {
		made := configMap(name, nil)
		made.Labels = map[string]string{"keep": fmt.Sprint(name == "c"), "mine": "yes"}
		if _, err := maps.Create(w, made, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := maps.DeleteCollection(w, dry, metav1.ListOptions{LabelSelector: "mine"}); err != nil {
		return err
	}
	if err := maps.DeleteCollection(w, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "keep=false"}); err != nil {
		return err
	}
	left, err := maps.List(w, metav1.ListOptions{LabelSelector: "mine"})
	return first(err, same("left", 1, len(left.Items)), same("which", "c", left.Items[0].Name))
}

func reviews(w *world) error {
	accounts := w.typed.CoreV1().ServiceAccounts(w.namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := accounts.Create(w, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](900)}}
	token, err := accounts.CreateToken(w, "robot", request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	review := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token.Status.Token}}
	judged, err := w.typed.AuthenticationV1().TokenReviews().Create(w, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	self, err := w.typed.AuthenticationV1().SelfSubjectReviews().Create(w, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	may, err := w.typed.AuthorizationV1().SubjectAccessReviews().Create(w, &authorization.SubjectAccessReview{
		Spec: authorization.SubjectAccessReviewSpec{User: judged.Status.User.Username,
			ResourceAttributes: &authorization.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: w.namespace}},
	}, metav1.CreateOptions{})
	return first(err,
		same("user", "system:serviceaccount:"+w.namespace+":robot", judged.Status.User.Username),
		same("self", true, len(self.Status.UserInfo.Groups) > 0),
		same("allowed", false, may.Status.Allowed))
}

func eviction(w *world) error {
	pods := w.typed.CoreV1().Pods(w.namespace)
	budget := &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "budget"},
		Spec: policy.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intOrString(1)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
	}
	if _, err := w.typed.PolicyV1().PodDisruptionBudgets(w.namespace).Create(w, budget, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, name := range []string{"one", "two"} {
		made, err := pods.Create(w, pod(name), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		made.Status.Phase = corev1.PodRunning
		made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if _, err := pods.UpdateStatus(w, made, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	err := w.eventually("the budget counts", func() (bool, error) {
		found, err := w.typed.PolicyV1().PodDisruptionBudgets(w.namespace).Get(w, "budget", metav1.GetOptions{})
		return err == nil && found.Status.DisruptionsAllowed == 1 && found.Status.CurrentHealthy == 2, err
	})
	if err != nil {
		return err
	}
	evict := func(name string) error {
		return pods.EvictV1(w, &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}})
	}
	if err := evict("one"); err != nil {
		return err
	}
	refused := evict("two")
	if !apierrors.IsTooManyRequests(refused) || !apierrors.HasStatusCause(refused, policy.DisruptionBudgetCause) {
		return fmt.Errorf("the second eviction: %v", refused)
	}
	return says(refused, "Cannot evict pod as it would violate the pod's disruption budget.")
}
