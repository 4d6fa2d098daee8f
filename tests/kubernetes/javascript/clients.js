// What programs with @kubernetes/client-node do with an API server: one JSON line per piece, with what was wrong, if it was.
//
//   node clients.js KUBECONFIG
import assert from "node:assert/strict";
import {setTimeout as pause} from "node:timers/promises";
import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const definitions = config.makeApiClient(k8s.ApiextensionsV1Api);
const generic = k8s.KubernetesObjectApi.makeApiClient(config);
const as = (type) => k8s.setHeaderOptions("Content-Type", type);
const {JsonPatch, MergePatch, StrategicMergePatch, ServerSideApply} = k8s.PatchStrategy;

async function eventually(what, ask) {
    for (let left = 600; left > 0; left--) {
        if (await ask()) return;
        await pause(50);
    }
    throw new Error(`not in time: ${what}`);
}

const refused = (code) => (error) => error.code === code;
const map = (name, data = {}) => ({metadata: {name, labels: {mine: "yes"}}, data});
const deployment = {
    metadata: {name: "d"},
    spec: {replicas: 0, selector: {matchLabels: {app: "d"}}, template: {
        metadata: {labels: {app: "d"}}, spec: {containers: [{name: "main", image: "example.com/x:1"}]}}},
};

const pieces = {
    "objects are made, read, changed and deleted": async (namespace) => {
        await core.createNamespacedConfigMap({namespace, body: map("a", {k: "v"})});
        const read = await core.readNamespacedConfigMap({namespace, name: "a"});
        read.data.k = "w";
        const written = await core.replaceNamespacedConfigMap({namespace, name: "a", body: read});
        assert.equal(written.data.k, "w");
        assert.ok(read.metadata.creationTimestamp instanceof Date);
        await assert.rejects(core.replaceNamespacedConfigMap({namespace, name: "a", body: read}), refused(409));
        await core.deleteNamespacedConfigMap({namespace, name: "a"});
        await assert.rejects(core.readNamespacedConfigMap({namespace, name: "a"}), refused(404));
    },
    "lists come in pages": async (namespace) => {
        for (let at = 0; at < 7; at++) await core.createNamespacedConfigMap({namespace, body: map(`m${at}`)});
        const names = [];
        let _continue;
        do {
            const page = await core.listNamespacedConfigMap({namespace, labelSelector: "mine=yes", limit: 3, _continue});
            names.push(...page.items.map((each) => each.metadata.name));
            _continue = page.metadata._continue;
        } while (_continue);
        assert.deepEqual(names, ["m0", "m1", "m2", "m3", "m4", "m5", "m6"]);
    },
    "a watch goes on from where it ended": async (namespace) => {
        const {metadata} = await core.listNamespacedConfigMap({namespace});
        let resourceVersion = metadata.resourceVersion;
        const told = [];
        for (const name of ["a", "b"]) {
            await core.createNamespacedConfigMap({namespace, body: map(name)});
            await core.deleteNamespacedConfigMap({namespace, name});
            const seen = told.length;
            const path = `/api/v1/namespaces/${namespace}/configmaps`;
            const following = await new k8s.Watch(config).watch(path, {resourceVersion, labelSelector: "mine=yes"}, (type, thing) => {
                told.push(`${type} ${thing.metadata.name}`);
                resourceVersion = thing.metadata.resourceVersion;
            }, () => {});
            await eventually("two events", () => told.length >= seen + 2);
            following.abort();
        }
        assert.deepEqual(told, ["ADDED a", "DELETED a", "ADDED b", "DELETED b"]);
    },
    "an informer follows": async (namespace) => {
        const list = () => core.listNamespacedConfigMap({namespace, labelSelector: "mine=yes"});
        const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, list, "mine=yes");
        const told = [];
        for (const verb of ["add", "update", "delete"]) informer.on(verb, (thing) => told.push(`${verb} ${thing.metadata.name}`));
        await core.createNamespacedConfigMap({namespace, body: map("a")});
        await informer.start();
        await core.createNamespacedConfigMap({namespace, body: map("b")});
        await core.patchNamespacedConfigMap({namespace, name: "b", body: {data: {k: "v"}}}, as(MergePatch));
        await core.deleteNamespacedConfigMap({namespace, name: "b"});
        await eventually(`four events: ${told}`, () => told.length >= 4);
        await informer.stop();
        assert.deepEqual(told, ["add a", "add b", "update b", "delete b"]);
        assert.equal(informer.list(namespace).length, 1);
    },
    "all four patches, status and scale": async (namespace) => {
        await apps.createNamespacedDeployment({namespace, body: deployment});
        const patch = (type, body, more = {}) => apps.patchNamespacedDeployment({namespace, name: "d", body, ...more}, as(type));
        await patch(JsonPatch, [{op: "add", path: "/metadata/labels", value: {json: "yes"}}]);
        await patch(MergePatch, {metadata: {labels: {merge: "yes"}}});
        await patch(StrategicMergePatch, {spec: {template: {spec: {containers: [{name: "two", image: "y"}]}}}});
        const wanted = {apiVersion: "apps/v1", kind: "Deployment", spec: {template: {spec: {containers: [{name: "main", image: "z"}]}}}};
        await assert.rejects(patch(ServerSideApply, wanted, {fieldManager: "js"}), refused(409));
        const applied = await patch(ServerSideApply, wanted, {fieldManager: "js", force: true});
        assert.deepEqual(applied.metadata.labels, {json: "yes", merge: "yes"});
        assert.deepEqual(applied.spec.template.spec.containers.map((each) => each.image).sort(), ["y", "z"]);
        await apps.patchNamespacedDeploymentScale({namespace, name: "d", body: {spec: {replicas: 2}}}, as(MergePatch));
        assert.equal((await apps.readNamespacedDeploymentScale({namespace, name: "d"})).spec.replicas, 2);
        const condition = {type: "Fit", status: "True", reason: "Fit", message: ""};
        await apps.patchNamespacedDeploymentStatus({namespace, name: "d", body: {status: {conditions: [condition]}}}, as(MergePatch));
    },
    "each propagation of a deletion": async (namespace) => {
        for (const propagationPolicy of ["Orphan", "Background", "Foreground"]) {
            const name = propagationPolicy.toLowerCase();
            const owner = await core.createNamespacedConfigMap({namespace, body: map(name)});
            const owned = map(`${name}-owned`);
            owned.metadata.ownerReferences = [{apiVersion: "v1", kind: "ConfigMap", name, uid: owner.metadata.uid, blockOwnerDeletion: true}];
            await core.createNamespacedConfigMap({namespace, body: owned});
            await core.deleteNamespacedConfigMap({namespace, name, propagationPolicy});
            const left = propagationPolicy === "Orphan" ? [`${name}-owned`] : [];
            await eventually(propagationPolicy, async () => {
                const {items} = await core.listNamespacedConfigMap({namespace, labelSelector: "mine=yes"});
                return JSON.stringify(items.map((each) => each.metadata.name)) === JSON.stringify(left);
            });
            if (left.length) await core.deleteNamespacedConfigMap({namespace, name: left[0]});
        }
    },
    "a definition makes a kind, with status and scale": async (namespace) => {
        const group = `${namespace}.example.com`;
        const number = {type: "integer"};
        await definitions.createCustomResourceDefinition({body: {
            metadata: {name: `things.${group}`},
            spec: {group, scope: "Namespaced", names: {plural: "things", singular: "thing", kind: "Thing"}, versions: [{
                name: "v1", served: true, storage: true,
                subresources: {status: {}, scale: {specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas"}},
                schema: {openAPIV3Schema: {type: "object", properties: {
                    spec: {type: "object", properties: {replicas: number}},
                    status: {type: "object", properties: {replicas: number}}}}}}]},
        }});
        const place = {group, version: "v1", namespace, plural: "things"};
        const body = {apiVersion: `${group}/v1`, kind: "Thing", metadata: {name: "one", namespace}, spec: {replicas: 1}};
        await eventually("the kind", async () => {
            try {
                await custom.createNamespacedCustomObject({...place, body});
                return true;
            } catch (error) {
                if (error.code !== 404) throw error;
                return false;
            }
        });
        const one = {...place, name: "one"};
        await custom.patchNamespacedCustomObjectStatus({...one, body: {status: {replicas: 1}}}, as(MergePatch));
        await custom.patchNamespacedCustomObjectScale({...one, body: {spec: {replicas: 4}}}, as(MergePatch));
        const found = await generic.read({...body});
        assert.deepEqual([found.spec.replicas, found.status.replicas], [4, 1]);
        await generic.patch({...body, spec: {replicas: 5}}, undefined, undefined, "js", true, ServerSideApply);
        await assert.rejects(custom.patchNamespacedCustomObject({...one, body: {}}, as(StrategicMergePatch)), refused(415));
        await custom.deleteNamespacedCustomObject(one);
        await definitions.deleteCustomResourceDefinition({name: `things.${group}`});
    },
};

let failed = 0;
for (const [name, work] of Object.entries(pieces)) {
    const line = {name};
    const namespace = (await core.createNamespace({body: {metadata: {generateName: "js-"}}})).metadata.name;
    try {
        await work(namespace);
    } catch (error) {
        line.error = `${error.stack}`;
        failed++;
    }
    console.log(JSON.stringify(line));
    await core.deleteNamespace({name: namespace});
}
process.exit(failed ? 1 : 0);
