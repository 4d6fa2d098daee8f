"""The fixed addresses of the cluster's own network. Every cluster has the same: nobody outside sees them."""

GATEWAY = "10.88.0.1"                   # the node itself, as pods see it: the bridge
POD_NETWORK = "10.88.0.0/16"
PREFIX = 16                             # of the network of pods
BRIDGE = "tm0"                          # the link of the node to its pods
SERVICE_NETWORK = "10.96.0.0/16"        # where the API server takes the addresses of services from
WAY_OUT_NETWORK = "10.87.255.0/24"      # between the cluster and the program that leads out of it
WAY_OUT_PORT = 3                        # of the gateway, to which connections to the outside are redirected
DNS_PORT = 53
