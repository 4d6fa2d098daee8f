package main

import (
	"context"
	"fmt"

	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	scaling "k8s.io/client-go/scale"
	"k8s.io/utils/ptr"
)

var customPieces = []piece{
	{"a definition makes a kind, with status and scale", customKind},
}

func intOrString(number int) intstr.IntOrString { return intstr.FromInt32(int32(number)) }

// defined makes a definition of a kind in a group of the piece's own and waits until it is served.
func defined(w *world) (schema.GroupVersionResource, error) {
	group := w.namespace + ".example.com"
	object := func(properties map[string]definitions.JSONSchemaProps) definitions.JSONSchemaProps {
		return definitions.JSONSchemaProps{Type: "object", Properties: properties}
	}
	number := definitions.JSONSchemaProps{Type: "integer", Format: "int32", Minimum: ptr.To[float64](0)}
	definition := &definitions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things." + group},
		Spec: definitions.CustomResourceDefinitionSpec{
			Group: group, Scope: definitions.NamespaceScoped,
			Names: definitions.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []definitions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &definitions.CustomResourceSubresources{
					Status: &definitions.CustomResourceSubresourceStatus{},
					Scale: &definitions.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas",
						StatusReplicasPath: ".status.replicas"},
				},
				Schema: &definitions.CustomResourceValidation{OpenAPIV3Schema: ptr.To(object(map[string]definitions.JSONSchemaProps{
					"spec":   object(map[string]definitions.JSONSchemaProps{"replicas": number, "word": {Type: "string"}}),
					"status": object(map[string]definitions.JSONSchemaProps{"replicas": number}),
				}))},
			}},
		},
	}
	which := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
	if _, err := w.defs.ApiextensionsV1().CustomResourceDefinitions().Create(w, definition, metav1.CreateOptions{}); err != nil {
		return which, err
	}
	return which, w.eventually("the definition is served", func() (bool, error) {
		_, err := w.dynamic.Resource(which).Namespace(w.namespace).List(w, metav1.ListOptions{})
		return err == nil, nil
	})
}

func thing(group, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Thing", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"replicas": int64(1)},
	}}
}

func customKind(w *world) error {
	which, err := defined(w)
	if err != nil {
		return err
	}
	defer w.defs.ApiextensionsV1().CustomResourceDefinitions().Delete(context.Background(), "things."+which.Group, metav1.DeleteOptions{})
	things := w.dynamic.Resource(which).Namespace(w.namespace)
	stream, err := things.Watch(w, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer stream.Stop()
	made, err := things.Create(w, thing(which.Group, "one"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	wrong := thing(which.Group, "two")
	wrong.Object["spec"] = map[string]any{"replicas": int64(-1)}
	_, invalid := things.Create(w, wrong, metav1.CreateOptions{})
	if !apierrors.IsInvalid(invalid) {
		return fmt.Errorf("a negative number: %v", invalid)
	}
	made.Object["status"] = map[string]any{"replicas": int64(1)}
	if made, err = things.UpdateStatus(w, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	for form, body := range map[types.PatchType]string{
		types.JSONPatchType:  `[{"op":"add","path":"/metadata/labels","value":{"json":"yes"}}]`,
		types.MergePatchType: `{"spec":{"word":"merged"}}`,
	} {
		if _, err := things.Patch(w, "one", form, []byte(body), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", form, err)
		}
	}
	_, strategic := things.Patch(w, "one", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{})
	if !apierrors.IsUnsupportedMediaType(strategic) {
		return fmt.Errorf("a strategic merge: %v", strategic)
	}
	applied := thing(which.Group, "one")
	applied.Object["spec"] = map[string]any{"word": "applied"}
	if _, err := things.Apply(w, "one", applied, metav1.ApplyOptions{FieldManager: "applier", Force: true}); err != nil {
		return err
	}
	if err := scaled(w, which); err != nil {
		return err
	}
	if err := things.Delete(w, "one", metav1.DeleteOptions{}); err != nil {
		return err
	}
	var told string
	for event := range stream.ResultChan() {
		told += string(event.Type[:1])
		if event.Type == "DELETED" {
			break
		}
	}
	return same("events", "AMMMMMD", told)
}

func scaled(w *world, which schema.GroupVersionResource) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(w.typed.Discovery()))
	kinds := scaling.NewDiscoveryScaleKindResolver(w.typed.Discovery())
	var client scaling.ScalesGetter
	err := w.eventually("discovery of the kind", func() (bool, error) {
		mapper.Reset()
		_, err := mapper.ResourceFor(which)
		return err == nil, nil
	})
	if err == nil {
		client, err = scaling.NewForConfig(rest.CopyConfig(w.config), mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	}
	if err != nil {
		return err
	}
	found, err := client.Scales(w.namespace).Get(w, which.GroupResource(), "one", metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.Spec.Replicas = 5
	written, err := client.Scales(w.namespace).Update(w, which.GroupResource(), found, metav1.UpdateOptions{})
	return first(err, same("status", 1, found.Status.Replicas), same("replicas", 5, written.Spec.Replicas))
}
