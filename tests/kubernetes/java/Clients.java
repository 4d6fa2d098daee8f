// What programs with fabric8's client do with an API server: one JSON line per piece, with what was wrong, if it was.
//
//   java -cp 'lib/*' Clients.java KUBECONFIG
import io.fabric8.kubernetes.api.model.*;
import io.fabric8.kubernetes.api.model.apiextensions.v1.*;
import io.fabric8.kubernetes.api.model.apps.*;
import io.fabric8.kubernetes.client.*;
import io.fabric8.kubernetes.client.dsl.base.*;
import io.fabric8.kubernetes.client.informers.*;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.io.File;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.BooleanSupplier;

public class Clients {
    interface Piece { void run(KubernetesClient client, String namespace) throws Exception; }

    static final Map<String, Piece> PIECES = new LinkedHashMap<>();

    static {
        PIECES.put("objects are made, read, changed and deleted", Clients::objects);
        PIECES.put("lists come in pages", Clients::pages);
        PIECES.put("a watch and an informer follow", Clients::following);
        PIECES.put("patches of every kind, status and scale", Clients::patches);
        PIECES.put("each propagation of a deletion", Clients::propagation);
        PIECES.put("a definition makes a kind", Clients::definition);
    }

    public static void main(String[] arguments) throws Exception {
        var config = io.fabric8.kubernetes.client.Config.fromKubeconfig(new File(arguments[0]));
        int failed = 0;
        try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
            for (Map.Entry<String, Piece> each : PIECES.entrySet()) {
                Map<String, String> line = new LinkedHashMap<>(Map.of("name", each.getKey()));
                Namespace made = client.namespaces().resource(new NamespaceBuilder().withNewMetadata()
                    .withGenerateName("java-").endMetadata().build()).create();
                try {
                    each.getValue().run(client, made.getMetadata().getName());
                } catch (Exception | AssertionError error) {
                    line.put("error", error + " at " + error.getStackTrace()[0] + " " + error.getStackTrace()[1]);
                    failed++;
                }
                System.out.println(Serialization.jsonMapper().writeValueAsString(line));
                client.namespaces().resource(made).delete();
            }
        }
        System.exit(failed == 0 ? 0 : 1);
    }

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) throw new AssertionError("expected " + expected + ", found " + found);
    }

    static void eventually(String what, BooleanSupplier ask) throws InterruptedException {
        for (int left = 600; left > 0; left--) {
            if (ask.getAsBoolean()) return;
            Thread.sleep(50);
        }
        throw new AssertionError("not in time: " + what);
    }

    static ConfigMap map(String namespace, String name) {
        return new ConfigMapBuilder().withNewMetadata().withNamespace(namespace).withName(name).addToLabels("mine", "yes")
            .endMetadata().addToData("k", "v").build();
    }

    static void refused(int code, Runnable work) {
        try {
            work.run();
        } catch (KubernetesClientException error) {
            same(code, error.getCode());
            return;
        }
        throw new AssertionError("not refused with " + code);
    }

    static void objects(KubernetesClient client, String namespace) {
        ConfigMap made = client.resource(map(namespace, "a")).create();
        ConfigMap written = client.resource(new ConfigMapBuilder(made).addToData("k", "w").build()).update();
        same("w", client.configMaps().inNamespace(namespace).withName("a").get().getData().get("k"));
        refused(409, () -> client.resource(map(namespace, "a")).create());
        refused(409, () -> client.resource(made).lockResourceVersion().update());
        client.configMaps().inNamespace(namespace).withName("a").edit(found ->
            new ConfigMapBuilder(found).addToData("edited", "yes").build());
        same(true, written.getMetadata().getUid().equals(made.getMetadata().getUid()));
        client.resource(made).delete();
        same(null, client.configMaps().inNamespace(namespace).withName("a").get());
    }

    static void pages(KubernetesClient client, String namespace) {
        for (int at = 0; at < 7; at++) client.resource(map(namespace, "m" + at)).create();
        List<String> names = new ArrayList<>();
        String more = null;
        do {
            ConfigMapList page = client.configMaps().inNamespace(namespace).withLabel("mine", "yes")
                .list(new ListOptionsBuilder().withLimit(3L).withContinue(more).build());
            page.getItems().forEach(each -> names.add(each.getMetadata().getName()));
            more = page.getMetadata().getContinue();
        } while (more != null && !more.isEmpty());
        same(List.of("m0", "m1", "m2", "m3", "m4", "m5", "m6"), names);
    }

    static void following(KubernetesClient client, String namespace) throws Exception {
        client.resource(map(namespace, "a")).create();
        List<String> told = new CopyOnWriteArrayList<>(), seen = new CopyOnWriteArrayList<>();
        String from = client.configMaps().inNamespace(namespace).list().getMetadata().getResourceVersion();
        SharedIndexInformer<ConfigMap> informer = client.configMaps().inNamespace(namespace).withLabel("mine", "yes")
            .inform(new ResourceEventHandler<>() {
                public void onAdd(ConfigMap thing) { told.add("+" + thing.getMetadata().getName()); }
                public void onUpdate(ConfigMap old, ConfigMap thing) { told.add("~" + thing.getMetadata().getName()); }
                public void onDelete(ConfigMap thing, boolean unknown) { told.add("-" + thing.getMetadata().getName()); }
            });
        client.resource(map(namespace, "b")).create();
        client.configMaps().inNamespace(namespace).withName("b").edit(found ->
            new ConfigMapBuilder(found).addToData("k", "w").build());
        client.configMaps().inNamespace(namespace).withName("b").delete();
        try (Watch watch = client.configMaps().inNamespace(namespace).withLabel("mine", "yes").withResourceVersion(from)
                .watch(new Watcher<>() {
                    public void eventReceived(Action action, ConfigMap thing) { seen.add(action + " " + thing.getMetadata().getName()); }
                    public void onClose(WatcherException cause) { }
                })) {
            eventually("the watch: " + seen, () -> seen.size() >= 3);
        }
        eventually("the informer: " + told, () -> told.size() >= 4);
        same(List.of("+a", "+b", "~b", "-b"), told);
        same(List.of("ADDED b", "MODIFIED b", "DELETED b"), seen);
        same(1, informer.getIndexer().list().size());
        informer.close();
    }

    static void patches(KubernetesClient client, String namespace) throws Exception {
        Deployment made = client.resource(new DeploymentBuilder().withNewMetadata().withNamespace(namespace).withName("d").endMetadata()
            .withNewSpec().withReplicas(0).withNewSelector().addToMatchLabels("app", "d").endSelector()
            .withNewTemplate().withNewMetadata().addToLabels("app", "d").endMetadata().withNewSpec()
            .addNewContainer().withName("main").withImage("example.com/x:1").endContainer().endSpec().endTemplate().endSpec()
            .build()).create();
        var one = client.apps().deployments().inNamespace(namespace).withName("d");
        one.patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":{\"json\":\"yes\"}}]");
        one.patch(PatchContext.of(PatchType.JSON_MERGE), "{\"metadata\":{\"labels\":{\"merge\":\"yes\"}}}");
        one.patch(PatchContext.of(PatchType.STRATEGIC_MERGE),
            "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"two\",\"image\":\"y\"}]}}}}");
        Deployment wanted = new DeploymentBuilder().withNewMetadata().withNamespace(namespace).withName("d").addToLabels("applied", "yes")
            .endMetadata().build();
        client.resource(wanted).fieldManager("java").forceConflicts().serverSideApply();
        Deployment found = one.get();
        same(Map.of("json", "yes", "merge", "yes", "applied", "yes"), found.getMetadata().getLabels());
        same(2, found.getSpec().getTemplate().getSpec().getContainers().size());
        same(3, one.scale(new io.fabric8.kubernetes.api.model.autoscaling.v1.ScaleBuilder().withNewMetadata().withName("d")
            .withNamespace(namespace).endMetadata().withNewSpec().withReplicas(3).endSpec().build()).getSpec().getReplicas());
        eventually("a status that its controller does not write at the same moment", () -> {
            try {
                return one.editStatus(each -> new DeploymentBuilder(each).editOrNewStatus().withCollisionCount(7).endStatus().build()) != null;
            } catch (KubernetesClientException error) {
                if (error.getCode() == 409) return false;
                throw error;
            }
        });
        same(made.getMetadata().getUid(), one.get().getMetadata().getUid());
    }

    static void propagation(KubernetesClient client, String namespace) throws Exception {
        for (DeletionPropagation how : DeletionPropagation.values()) {
            String name = how.toString().toLowerCase(Locale.ROOT);
            ConfigMap owner = client.resource(map(namespace, name)).create();
            ConfigMap owned = new ConfigMapBuilder(map(namespace, name + "-owned")).editMetadata().addNewOwnerReference()
                .withApiVersion("v1").withKind("ConfigMap").withName(name).withUid(owner.getMetadata().getUid())
                .withBlockOwnerDeletion(true).endOwnerReference().endMetadata().build();
            client.resource(owned).create();
            client.resource(owner).withPropagationPolicy(how).delete();
            int left = how == DeletionPropagation.ORPHAN ? 1 : 0;
            eventually(name, () -> client.configMaps().inNamespace(namespace).withLabel("mine", "yes").list().getItems().size() == left);
            client.configMaps().inNamespace(namespace).withLabel("mine", "yes").delete();
        }
    }

    static void definition(KubernetesClient client, String namespace) throws Exception {
        String group = namespace + ".example.com";
        CustomResourceDefinition made = client.resource(new CustomResourceDefinitionBuilder().withNewMetadata().withName("things." + group)
            .endMetadata().withNewSpec().withGroup(group).withScope("Namespaced")
            .withNewNames().withPlural("things").withSingular("thing").withKind("Thing").endNames()
            .addNewVersion().withName("v1").withServed(true).withStorage(true).withNewSchema().withNewOpenAPIV3Schema().withType("object")
            .withXKubernetesPreserveUnknownFields(true).endOpenAPIV3Schema().endSchema()
            .withNewSubresources().withNewStatus().endStatus().endSubresources().endVersion().endSpec().build()).create();
        client.apiextensions().v1().customResourceDefinitions().withName("things." + group).waitUntilCondition(found ->
            found != null && found.getStatus() != null && found.getStatus().getConditions() != null && found.getStatus().getConditions()
                .stream().anyMatch(each -> each.getType().equals("Established") && each.getStatus().equals("True")), 30, TimeUnit.SECONDS);
        ResourceDefinitionContext context = new ResourceDefinitionContext.Builder().withGroup(group).withVersion("v1").withKind("Thing")
            .withPlural("things").withNamespaced(true).build();
        var things = client.genericKubernetesResources(context).inNamespace(namespace);
        GenericKubernetesResource thing = new GenericKubernetesResourceBuilder().withApiVersion(group + "/v1").withKind("Thing")
            .withNewMetadata().withName("one").endMetadata().addToAdditionalProperties("spec", Map.of("size", 1)).build();
        eventually("the kind", () -> {
            try {
                return things.resource(thing).create() != null;
            } catch (KubernetesClientException error) {
                if (error.getCode() == 404) return false;
                throw error;
            }
        });
        things.withName("one").editStatus(found -> new GenericKubernetesResourceBuilder(found)
            .addToAdditionalProperties("status", Map.of("size", 1)).build());
        GenericKubernetesResource found = things.withName("one").get();
        same(Integer.valueOf(1), found.get("status", "size"));
        refused(415, () -> things.withName("one").patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{}"));
        same(1, things.list().getItems().size());
        things.withName("one").delete();
        client.resource(made).delete();
    }
}
