"""The fixed addresses of the cluster's own network. Every cluster has the same: nobody outside sees them."""

GATEWAY = "10.88.0.1"                   # the node itself, as pods see it: the bridge
PREFIX = 16                             # of the network of pods
SERVICE_NETWORK = "10.96.0.0/16"        # where the API server takes the addresses of services from
