// Generated from proto/agent.proto and proto/health.proto by rpc/src/generate.ts.
export const descriptor = {
  "nested": {
    "google": {
      "nested": {
        "protobuf": {
          "nested": {
            "Timestamp": {
              "fields": {
                "seconds": {
                  "type": "int64",
                  "id": 1
                },
                "nanos": {
                  "type": "int32",
                  "id": 2
                }
              }
            }
          }
        }
      }
    },
    "runtimeenforcer": {
      "nested": {
        "agent": {
          "nested": {
            "v1": {
              "nested": {
                "AgentObserver": {
                  "methods": {
                    "Watch": {
                      "requestType": "WatchRequest",
                      "responseType": "Report",
                      "responseStream": true
                    },
                    "Acknowledge": {
                      "requestType": "AcknowledgeRequest",
                      "responseType": "AcknowledgeResponse"
                    },
                    "ListPoliciesStatus": {
                      "requestType": "ListPoliciesStatusRequest",
                      "responseType": "ListPoliciesStatusResponse"
                    },
                    "ListPods": {
                      "requestType": "ListPodsRequest",
                      "responseType": "ListPodsResponse"
                    },
                    "ListBindings": {
                      "requestType": "ListBindingsRequest",
                      "responseType": "ListBindingsResponse"
                    }
                  }
                },
                "Cursor": {
                  "fields": {
                    "incarnation": {
                      "type": "string",
                      "id": 1
                    },
                    "sequence": {
                      "type": "uint64",
                      "id": 2
                    }
                  }
                },
                "WatchRequest": {
                  "fields": {
                    "policies": {
                      "type": "Cursor",
                      "id": 1
                    },
                    "violations": {
                      "type": "Cursor",
                      "id": 2
                    },
                    "observations": {
                      "type": "Cursor",
                      "id": 3
                    }
                  }
                },
                "Report": {
                  "fields": {
                    "node": {
                      "type": "NodeState",
                      "id": 1
                    },
                    "policies": {
                      "type": "PolicyPage",
                      "id": 2
                    },
                    "violations": {
                      "type": "ViolationPage",
                      "id": 3
                    },
                    "observations": {
                      "type": "ObservationPage",
                      "id": 4
                    }
                  }
                },
                "NodeState": {
                  "fields": {
                    "nodeName": {
                      "type": "string",
                      "id": 1,
                      "protoName": "node_name"
                    },
                    "agentVersion": {
                      "type": "string",
                      "id": 2,
                      "protoName": "agent_version"
                    },
                    "startedAt": {
                      "type": "google.protobuf.Timestamp",
                      "id": 3,
                      "protoName": "started_at"
                    },
                    "attachment": {
                      "type": "string",
                      "id": 4
                    },
                    "kernel": {
                      "type": "string",
                      "id": 5
                    },
                    "attached": {
                      "type": "bool",
                      "id": 6
                    },
                    "degraded": {
                      "type": "string",
                      "id": 7
                    },
                    "override": {
                      "type": "string",
                      "id": 8
                    },
                    "runtimeConnected": {
                      "type": "bool",
                      "id": 9,
                      "protoName": "runtime_connected"
                    },
                    "policiesLoaded": {
                      "type": "bool",
                      "id": 10,
                      "protoName": "policies_loaded"
                    }
                  }
                },
                "PolicyPage": {
                  "fields": {
                    "cursor": {
                      "type": "Cursor",
                      "id": 1
                    },
                    "resync": {
                      "type": "bool",
                      "id": 2
                    },
                    "policies": {
                      "keyType": "string",
                      "type": "PolicyStatus",
                      "id": 3
                    },
                    "removed": {
                      "rule": "repeated",
                      "type": "string",
                      "id": 4
                    },
                    "more": {
                      "type": "bool",
                      "id": 5
                    }
                  }
                },
                "PolicyStatus": {
                  "fields": {
                    "state": {
                      "type": "PolicyState",
                      "id": 1
                    },
                    "mode": {
                      "type": "PolicyMode",
                      "id": 2
                    },
                    "message": {
                      "type": "string",
                      "id": 3
                    },
                    "digest": {
                      "type": "string",
                      "id": 4
                    },
                    "paths": {
                      "type": "uint32",
                      "id": 5
                    }
                  }
                },
                "PolicyState": {
                  "values": {
                    "POLICY_STATE_UNSPECIFIED": 0,
                    "POLICY_STATE_READY": 1,
                    "POLICY_STATE_ERROR": 2,
                    "POLICY_STATE_RETAINED": 3
                  }
                },
                "PolicyMode": {
                  "values": {
                    "POLICY_MODE_UNSPECIFIED": 0,
                    "POLICY_MODE_MONITOR": 1,
                    "POLICY_MODE_PROTECT": 2
                  }
                },
                "ViolationPage": {
                  "fields": {
                    "cursor": {
                      "type": "Cursor",
                      "id": 1
                    },
                    "resync": {
                      "type": "bool",
                      "id": 2
                    },
                    "entries": {
                      "rule": "repeated",
                      "type": "ViolationEntry",
                      "id": 3
                    },
                    "more": {
                      "type": "bool",
                      "id": 4
                    }
                  }
                },
                "ViolationEntry": {
                  "fields": {
                    "sequence": {
                      "type": "uint64",
                      "id": 1
                    },
                    "violation": {
                      "type": "ViolationRecord",
                      "id": 2
                    },
                    "previousOccurrences": {
                      "type": "uint64",
                      "id": 3,
                      "protoName": "previous_occurrences"
                    }
                  }
                },
                "ViolationRecord": {
                  "oneofs": {
                    "_uid": {
                      "oneof": [
                        "uid"
                      ]
                    }
                  },
                  "fields": {
                    "timestamp": {
                      "type": "google.protobuf.Timestamp",
                      "id": 1
                    },
                    "podName": {
                      "type": "string",
                      "id": 2,
                      "protoName": "pod_name"
                    },
                    "containerName": {
                      "type": "string",
                      "id": 3,
                      "protoName": "container_name"
                    },
                    "executablePath": {
                      "type": "string",
                      "id": 4,
                      "protoName": "executable_path"
                    },
                    "nodeName": {
                      "type": "string",
                      "id": 5,
                      "protoName": "node_name"
                    },
                    "action": {
                      "type": "string",
                      "id": 6
                    },
                    "policyName": {
                      "type": "string",
                      "id": 7,
                      "protoName": "policy_name"
                    },
                    "workloadName": {
                      "type": "string",
                      "id": 8,
                      "protoName": "workload_name"
                    },
                    "workloadKind": {
                      "type": "string",
                      "id": 9,
                      "protoName": "workload_kind"
                    },
                    "occurrences": {
                      "type": "uint64",
                      "id": 10
                    },
                    "firstObserved": {
                      "type": "google.protobuf.Timestamp",
                      "id": 11,
                      "protoName": "first_observed"
                    },
                    "reason": {
                      "type": "string",
                      "id": 12
                    },
                    "origin": {
                      "type": "string",
                      "id": 13
                    },
                    "pid": {
                      "type": "uint32",
                      "id": 14
                    },
                    "uid": {
                      "type": "uint32",
                      "id": 15,
                      "options": {
                        "proto3_optional": true
                      }
                    },
                    "parentName": {
                      "type": "string",
                      "id": 16,
                      "protoName": "parent_name"
                    },
                    "containerId": {
                      "type": "string",
                      "id": 17,
                      "protoName": "container_id"
                    },
                    "image": {
                      "type": "string",
                      "id": 18
                    },
                    "overflow": {
                      "type": "bool",
                      "id": 19
                    }
                  }
                },
                "ObservationPage": {
                  "fields": {
                    "cursor": {
                      "type": "Cursor",
                      "id": 1
                    },
                    "resync": {
                      "type": "bool",
                      "id": 2
                    },
                    "entries": {
                      "rule": "repeated",
                      "type": "ObservationEntry",
                      "id": 3
                    },
                    "more": {
                      "type": "bool",
                      "id": 4
                    }
                  }
                },
                "ObservationEntry": {
                  "fields": {
                    "sequence": {
                      "type": "uint64",
                      "id": 1
                    },
                    "observation": {
                      "type": "Observation",
                      "id": 2
                    },
                    "previousCount": {
                      "type": "uint64",
                      "id": 3,
                      "protoName": "previous_count"
                    }
                  }
                },
                "Observation": {
                  "fields": {
                    "namespace": {
                      "type": "string",
                      "id": 1
                    },
                    "proposal": {
                      "type": "string",
                      "id": 2
                    },
                    "containerName": {
                      "type": "string",
                      "id": 3,
                      "protoName": "container_name"
                    },
                    "executablePath": {
                      "type": "string",
                      "id": 4,
                      "protoName": "executable_path"
                    },
                    "count": {
                      "type": "uint64",
                      "id": 5
                    },
                    "firstSeen": {
                      "type": "google.protobuf.Timestamp",
                      "id": 6,
                      "protoName": "first_seen"
                    },
                    "lastSeen": {
                      "type": "google.protobuf.Timestamp",
                      "id": 7,
                      "protoName": "last_seen"
                    },
                    "origins": {
                      "rule": "repeated",
                      "type": "string",
                      "id": 8
                    },
                    "pods": {
                      "rule": "repeated",
                      "type": "string",
                      "id": 9
                    },
                    "nodes": {
                      "rule": "repeated",
                      "type": "string",
                      "id": 10
                    }
                  }
                },
                "AcknowledgeRequest": {
                  "fields": {
                    "violations": {
                      "type": "Cursor",
                      "id": 1
                    },
                    "observations": {
                      "type": "Cursor",
                      "id": 2
                    }
                  }
                },
                "AcknowledgeResponse": {
                  "fields": {
                    "violationsAccepted": {
                      "type": "bool",
                      "id": 1,
                      "protoName": "violations_accepted"
                    },
                    "observationsAccepted": {
                      "type": "bool",
                      "id": 2,
                      "protoName": "observations_accepted"
                    }
                  }
                },
                "ListPoliciesStatusRequest": {
                  "fields": {
                    "pageToken": {
                      "type": "string",
                      "id": 1,
                      "protoName": "page_token"
                    }
                  }
                },
                "ListPoliciesStatusResponse": {
                  "fields": {
                    "policies": {
                      "keyType": "string",
                      "type": "PolicyStatus",
                      "id": 1
                    },
                    "nextPageToken": {
                      "type": "string",
                      "id": 2,
                      "protoName": "next_page_token"
                    }
                  }
                },
                "ListPodsRequest": {
                  "fields": {
                    "pageToken": {
                      "type": "string",
                      "id": 1,
                      "protoName": "page_token"
                    },
                    "namespace": {
                      "type": "string",
                      "id": 2
                    },
                    "podName": {
                      "type": "string",
                      "id": 3,
                      "protoName": "pod_name"
                    }
                  }
                },
                "ListPodsResponse": {
                  "fields": {
                    "pods": {
                      "rule": "repeated",
                      "type": "PodView",
                      "id": 1
                    },
                    "nextPageToken": {
                      "type": "string",
                      "id": 2,
                      "protoName": "next_page_token"
                    }
                  }
                },
                "PodView": {
                  "fields": {
                    "meta": {
                      "type": "PodMeta",
                      "id": 1
                    },
                    "containers": {
                      "keyType": "string",
                      "type": "ContainerMeta",
                      "id": 2
                    }
                  }
                },
                "PodMeta": {
                  "fields": {
                    "id": {
                      "type": "string",
                      "id": 1
                    },
                    "name": {
                      "type": "string",
                      "id": 2
                    },
                    "namespace": {
                      "type": "string",
                      "id": 3
                    },
                    "workloadName": {
                      "type": "string",
                      "id": 4,
                      "protoName": "workload_name"
                    },
                    "workloadType": {
                      "type": "string",
                      "id": 5,
                      "protoName": "workload_type"
                    },
                    "labels": {
                      "keyType": "string",
                      "type": "string",
                      "id": 6
                    },
                    "omitted": {
                      "type": "uint32",
                      "id": 7
                    }
                  }
                },
                "ContainerMeta": {
                  "fields": {
                    "id": {
                      "type": "string",
                      "id": 1
                    },
                    "name": {
                      "type": "string",
                      "id": 2
                    },
                    "cgroupId": {
                      "type": "uint64",
                      "id": 3,
                      "protoName": "cgroup_id"
                    },
                    "state": {
                      "type": "ContainerState",
                      "id": 4
                    },
                    "policyName": {
                      "type": "string",
                      "id": 5,
                      "protoName": "policy_name"
                    },
                    "listed": {
                      "type": "bool",
                      "id": 6
                    },
                    "image": {
                      "type": "string",
                      "id": 7
                    },
                    "pid": {
                      "type": "uint32",
                      "id": 8
                    },
                    "slot": {
                      "type": "uint32",
                      "id": 9
                    },
                    "generation": {
                      "type": "uint32",
                      "id": 10
                    },
                    "mountNamespace": {
                      "type": "uint32",
                      "id": 11,
                      "protoName": "mount_namespace"
                    },
                    "policyId": {
                      "type": "uint32",
                      "id": 12,
                      "protoName": "policy_id"
                    },
                    "presentCgroupId": {
                      "type": "uint64",
                      "id": 13,
                      "protoName": "present_cgroup_id"
                    }
                  }
                },
                "ContainerState": {
                  "values": {
                    "CONTAINER_STATE_UNSPECIFIED": 0,
                    "CONTAINER_STATE_ENFORCED": 1,
                    "CONTAINER_STATE_LEARNING": 2,
                    "CONTAINER_STATE_UNBOUND": 3,
                    "CONTAINER_STATE_WAITING": 4
                  }
                },
                "ListBindingsRequest": {
                  "fields": {
                    "pageToken": {
                      "type": "string",
                      "id": 1,
                      "protoName": "page_token"
                    }
                  }
                },
                "ListBindingsResponse": {
                  "fields": {
                    "bindings": {
                      "rule": "repeated",
                      "type": "KernelBinding",
                      "id": 1
                    },
                    "nextPageToken": {
                      "type": "string",
                      "id": 2,
                      "protoName": "next_page_token"
                    }
                  }
                },
                "KernelBinding": {
                  "fields": {
                    "cgroupId": {
                      "type": "uint64",
                      "id": 1,
                      "protoName": "cgroup_id"
                    },
                    "slot": {
                      "type": "uint32",
                      "id": 2
                    },
                    "indexed": {
                      "type": "bool",
                      "id": 3
                    },
                    "slotCgroupId": {
                      "type": "uint64",
                      "id": 4,
                      "protoName": "slot_cgroup_id"
                    },
                    "generation": {
                      "type": "uint32",
                      "id": 5
                    },
                    "mountNamespace": {
                      "type": "uint32",
                      "id": 6,
                      "protoName": "mount_namespace"
                    },
                    "policyId": {
                      "type": "uint32",
                      "id": 7,
                      "protoName": "policy_id"
                    },
                    "learning": {
                      "type": "bool",
                      "id": 8
                    },
                    "mode": {
                      "type": "PolicyMode",
                      "id": 9
                    },
                    "namespaceIndexed": {
                      "type": "bool",
                      "id": 10,
                      "protoName": "namespace_indexed"
                    }
                  }
                }
              }
            }
          }
        }
      }
    },
    "grpc": {
      "nested": {
        "health": {
          "nested": {
            "v1": {
              "nested": {
                "Health": {
                  "methods": {
                    "Check": {
                      "requestType": "HealthCheckRequest",
                      "responseType": "HealthCheckResponse"
                    },
                    "Watch": {
                      "requestType": "HealthCheckRequest",
                      "responseType": "HealthCheckResponse",
                      "responseStream": true
                    }
                  }
                },
                "HealthCheckRequest": {
                  "fields": {
                    "service": {
                      "type": "string",
                      "id": 1
                    }
                  }
                },
                "HealthCheckResponse": {
                  "fields": {
                    "status": {
                      "type": "ServingStatus",
                      "id": 1
                    }
                  },
                  "nested": {
                    "ServingStatus": {
                      "values": {
                        "UNKNOWN": 0,
                        "SERVING": 1,
                        "NOT_SERVING": 2,
                        "SERVICE_UNKNOWN": 3
                      }
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  }
};
