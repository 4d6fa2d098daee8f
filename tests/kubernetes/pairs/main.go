// Pairs prints objects of every built-in kind, filled at random, as protobuf and as the JSON that Go makes of that
// protobuf: one line each, base64 of the first, a space, the second. That is the truth our decoder is held against.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	admission "k8s.io/api/admission/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type filler struct {
	*rand.Rand
	density float64 // how likely a field is anything but its zero value
}

func (f *filler) pick(of ...string) string { return of[f.Intn(len(of))] }

// fill sets a value at random; depth stops types that contain themselves.
func (f *filler) fill(v reflect.Value, depth int) {
	if depth > 9 || f.Float64() > f.density {
		return
	}
	if made := f.special(v.Type()); made != nil {
		v.Set(reflect.ValueOf(made))
		return
	}
	switch v.Kind() {
	case reflect.Pointer: // as often to a zero value as to anything else
		v.Set(reflect.New(v.Type().Elem()))
		if f.Intn(2) == 0 {
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.Intn(3), 3))
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.Intn(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(f.pick("", "a", "example.com/b", "ключ", strings.Repeat("k", 200)))
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.pick("", "text", "žluťoučký 🐎", "line\nline \"quoted\" \u0000", strings.Repeat("long ", 100)))
	case reflect.Bool:
		v.SetBool(f.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 127, 128, 300, -2147483648, 2147483647, f.Int63(), -f.Int63()}[f.Intn(10)])
		if v.Kind() == reflect.Int32 {
			v.SetInt(int64(int32(v.Int())))
		}
	case reflect.Uint8:
		v.SetUint(uint64(f.Intn(256)))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -2.5, 1e300, 1e-300, 123456789012, 0.1}[f.Intn(7)])
	case reflect.Interface:
	default:
		panic("no way to fill " + v.Type().String())
	}
}

// special makes values of types whose fields cannot be set one by one.
func (f *filler) special(t reflect.Type) any {
	moment := []time.Time{{}, time.Unix(0, 0), time.Unix(1753000000, 123456789), time.Unix(-1, 999), time.Unix(-60000000000, 0)}[f.Intn(5)]
	document := f.pick(`{"a":[1,{"b":null}],"c":"d"}`, `"text"`, `7`, `true`, `[]`, `null`, ` { "z" : 1.5 } `)
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return resource.MustParse(f.pick("0", "1", "500m", "2Gi", "1e3", "-1500m", "1.5Gi", "100n", "9223372036854775807", "12345678901234567890"))
	case reflect.TypeFor[metav1.Time]():
		return metav1.NewTime(moment)
	case reflect.TypeFor[metav1.MicroTime]():
		return metav1.NewMicroTime(moment)
	case reflect.TypeFor[intstr.IntOrString]():
		return []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(-7), intstr.FromString(""), intstr.FromString("25%")}[f.Intn(4)]
	case reflect.TypeFor[runtime.RawExtension]():
		return runtime.RawExtension{Raw: []byte(document)}
	case reflect.TypeFor[metav1.FieldsV1]():
		return *metav1.NewFieldsV1(f.pick(`{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}`, `{}`, ``))
	case reflect.TypeFor[apiextensions.JSON]():
		return apiextensions.JSON{Raw: []byte(document)}
	}
	return nil
}

func main() {
	count, seed := flag.Int("count", 20, "objects per kind"), flag.Int64("seed", 1, "of the random numbers")
	flag.Parse()
	known := scheme.Scheme
	for _, add := range []func(*runtime.Scheme) error{
		admission.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	var kinds []schema.GroupVersionKind
	for kind := range known.AllKnownTypes() {
		kinds = append(kinds, kind)
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	wire, out := protobuf.NewSerializer(known, known), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, kind := range kinds {
		for i := range *count {
			random := &filler{rand.New(rand.NewSource(*seed + int64(i))), 0.2 + 0.8*float64(i)/float64(*count)}
			object, err := known.New(kind)
			if err != nil {
				panic(err)
			}
			if _, ok := object.(interface{ Marshal() ([]byte, error) }); !ok || kind.Version == runtime.APIVersionInternal {
				break
			}
			if i > 0 { // the first of each kind is all zeros
				value := reflect.ValueOf(object).Elem()
				for field := range value.NumField() {
					random.fill(value.Field(field), 0)
				}
			}
			object.GetObjectKind().SetGroupVersionKind(kind)
			if object.GetObjectKind().GroupVersionKind().Empty() { // WatchEvent does not say what it is
				break
			}
			var sent strings.Builder
			if err := wire.Encode(object, &sent); err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			read, _, err := wire.Decode([]byte(sent.String()), nil, nil)
			if err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			read.GetObjectKind().SetGroupVersionKind(kind)
			shown, err := json.Marshal(read)
			if err != nil {
				panic(fmt.Sprint(kind, ": ", err))
			}
			fmt.Fprintf(out, "%s %s\n", base64.StdEncoding.EncodeToString([]byte(sent.String())), shown)
		}
	}
}
