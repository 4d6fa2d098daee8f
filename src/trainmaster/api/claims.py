"""Which claim is behind a volume of a pod: one that it names, or one that is made for it alone."""

from trainmaster.api.meta import Object, controller_of, name_of, namespace_of, uid_of


def claim_of(pod: Object, volume: Object) -> str:
    """The claim's name; nothing for a volume of another kind."""
    if "ephemeral" in volume:
        return f"{name_of(pod)}-{volume.get('name')}"
    return str((volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def claims_of(pod: Object) -> list[str]:
    """Of all its volumes."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [name for volume in volumes if (name := claim_of(pod, volume))]


def foreign(pod: Object, claim: Object) -> str:
    """Why a claim of the right name is not the one that was made for a pod; nothing, if it is."""
    if (controller_of(claim) or {}).get("uid") == uid_of(pod):
        return ""
    return (f"PVC {namespace_of(claim)}/{name_of(claim)} was not created for pod {namespace_of(pod)}/{name_of(pod)} "
            "(pod is not owner)")
