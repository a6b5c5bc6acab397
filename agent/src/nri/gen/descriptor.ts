// Generated from proto/ttrpc.proto and proto/nri.proto by agent/src/nri/generate.ts.
export const descriptor = {
  "nested": {
    "ttrpc": {
      "nested": {
        "Request": {
          "edition": "2023",
          "options": {
            "features": {
              "utf8_validation": "NONE",
              "field_presence": "IMPLICIT"
            }
          },
          "fields": {
            "service": {
              "type": "string",
              "id": 1
            },
            "method": {
              "type": "string",
              "id": 2
            },
            "payload": {
              "type": "bytes",
              "id": 3
            },
            "timeoutNano": {
              "type": "int64",
              "id": 4,
              "protoName": "timeout_nano"
            }
          }
        },
        "Status": {
          "edition": "2023",
          "options": {
            "features": {
              "utf8_validation": "NONE",
              "field_presence": "IMPLICIT"
            }
          },
          "fields": {
            "code": {
              "type": "int32",
              "id": 1
            },
            "message": {
              "type": "string",
              "id": 2
            }
          }
        },
        "Response": {
          "edition": "2023",
          "options": {
            "features": {
              "utf8_validation": "NONE",
              "field_presence": "IMPLICIT"
            }
          },
          "fields": {
            "status": {
              "type": "Status",
              "id": 1
            },
            "payload": {
              "type": "bytes",
              "id": 2
            }
          }
        }
      }
    },
    "nri": {
      "nested": {
        "pkg": {
          "nested": {
            "api": {
              "nested": {
                "v1alpha1": {
                  "nested": {
                    "Runtime": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "methods": {
                        "RegisterPlugin": {
                          "requestType": "RegisterPluginRequest",
                          "responseType": "Empty"
                        }
                      }
                    },
                    "Plugin": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "methods": {
                        "Configure": {
                          "requestType": "ConfigureRequest",
                          "responseType": "ConfigureResponse"
                        },
                        "Synchronize": {
                          "requestType": "SynchronizeRequest",
                          "responseType": "SynchronizeResponse"
                        },
                        "Shutdown": {
                          "requestType": "Empty",
                          "responseType": "Empty"
                        },
                        "StateChange": {
                          "requestType": "StateChangeEvent",
                          "responseType": "Empty"
                        },
                        "StartContainer": {
                          "requestType": "StartContainerRequest",
                          "responseType": "Empty"
                        },
                        "RemoveContainer": {
                          "requestType": "RemoveContainerRequest",
                          "responseType": "Empty"
                        }
                      }
                    },
                    "Empty": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {}
                    },
                    "RegisterPluginRequest": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "pluginName": {
                          "type": "string",
                          "id": 1,
                          "protoName": "plugin_name"
                        },
                        "pluginIdx": {
                          "type": "string",
                          "id": 2,
                          "protoName": "plugin_idx"
                        }
                      }
                    },
                    "ConfigureRequest": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "runtimeName": {
                          "type": "string",
                          "id": 2,
                          "protoName": "runtime_name"
                        },
                        "runtimeVersion": {
                          "type": "string",
                          "id": 3,
                          "protoName": "runtime_version"
                        },
                        "registrationTimeout": {
                          "type": "int64",
                          "id": 4,
                          "protoName": "registration_timeout"
                        },
                        "requestTimeout": {
                          "type": "int64",
                          "id": 5,
                          "protoName": "request_timeout"
                        }
                      }
                    },
                    "ConfigureResponse": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "events": {
                          "type": "int32",
                          "id": 2
                        },
                        "failurePolicy": {
                          "type": "FailurePolicy",
                          "id": 3,
                          "protoName": "failure_policy"
                        }
                      }
                    },
                    "FailurePolicy": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "failRequest": {
                          "type": "bool",
                          "id": 1,
                          "protoName": "fail_request"
                        },
                        "keepConnected": {
                          "type": "bool",
                          "id": 2,
                          "protoName": "keep_connected"
                        }
                      }
                    },
                    "SynchronizeRequest": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "pods": {
                          "rule": "repeated",
                          "type": "PodSandbox",
                          "id": 1
                        },
                        "containers": {
                          "rule": "repeated",
                          "type": "Container",
                          "id": 2
                        },
                        "more": {
                          "type": "bool",
                          "id": 3
                        }
                      }
                    },
                    "SynchronizeResponse": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "more": {
                          "type": "bool",
                          "id": 2
                        }
                      }
                    },
                    "Event": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "values": {
                        "UNKNOWN": 0,
                        "START_CONTAINER": 6,
                        "REMOVE_CONTAINER": 11
                      }
                    },
                    "StateChangeEvent": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "event": {
                          "type": "Event",
                          "id": 1
                        },
                        "pod": {
                          "type": "PodSandbox",
                          "id": 2
                        },
                        "container": {
                          "type": "Container",
                          "id": 3
                        }
                      }
                    },
                    "StartContainerRequest": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "pod": {
                          "type": "PodSandbox",
                          "id": 1
                        },
                        "container": {
                          "type": "Container",
                          "id": 2
                        }
                      }
                    },
                    "RemoveContainerRequest": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "pod": {
                          "type": "PodSandbox",
                          "id": 1
                        },
                        "container": {
                          "type": "Container",
                          "id": 2
                        }
                      }
                    },
                    "Entry": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "key": {
                          "type": "string",
                          "id": 1
                        },
                        "value": {
                          "type": "string",
                          "id": 2
                        }
                      }
                    },
                    "PodSandbox": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "id": {
                          "type": "string",
                          "id": 1
                        },
                        "name": {
                          "type": "string",
                          "id": 2
                        },
                        "uid": {
                          "type": "string",
                          "id": 3
                        },
                        "namespace": {
                          "type": "string",
                          "id": 4
                        },
                        "labels": {
                          "rule": "repeated",
                          "type": "Entry",
                          "id": 5
                        },
                        "annotations": {
                          "rule": "repeated",
                          "type": "Entry",
                          "id": 6
                        },
                        "runtimeHandler": {
                          "type": "string",
                          "id": 7,
                          "protoName": "runtime_handler"
                        },
                        "linux": {
                          "type": "LinuxPodSandbox",
                          "id": 8
                        },
                        "pid": {
                          "type": "uint32",
                          "id": 9
                        }
                      }
                    },
                    "LinuxPodSandbox": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "cgroupParent": {
                          "type": "string",
                          "id": 3,
                          "protoName": "cgroup_parent"
                        }
                      }
                    },
                    "ContainerState": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "values": {
                        "CONTAINER_UNKNOWN": 0,
                        "CONTAINER_CREATED": 1,
                        "CONTAINER_PAUSED": 2,
                        "CONTAINER_RUNNING": 3,
                        "CONTAINER_STOPPED": 4
                      }
                    },
                    "Container": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "id": {
                          "type": "string",
                          "id": 1
                        },
                        "podSandboxId": {
                          "type": "string",
                          "id": 2,
                          "protoName": "pod_sandbox_id"
                        },
                        "name": {
                          "type": "string",
                          "id": 3
                        },
                        "state": {
                          "type": "ContainerState",
                          "id": 4
                        },
                        "labels": {
                          "rule": "repeated",
                          "type": "Entry",
                          "id": 5
                        },
                        "annotations": {
                          "rule": "repeated",
                          "type": "Entry",
                          "id": 6
                        },
                        "args": {
                          "rule": "repeated",
                          "type": "string",
                          "id": 7
                        },
                        "linux": {
                          "type": "LinuxContainer",
                          "id": 11
                        },
                        "pid": {
                          "type": "uint32",
                          "id": 12
                        },
                        "image": {
                          "type": "Image",
                          "id": 22
                        }
                      }
                    },
                    "LinuxContainer": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "cgroupsPath": {
                          "type": "string",
                          "id": 5,
                          "protoName": "cgroups_path"
                        }
                      }
                    },
                    "Image": {
                      "edition": "2023",
                      "options": {
                        "features": {
                          "utf8_validation": "NONE",
                          "field_presence": "IMPLICIT"
                        }
                      },
                      "fields": {
                        "name": {
                          "type": "string",
                          "id": 1
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
  }
};
