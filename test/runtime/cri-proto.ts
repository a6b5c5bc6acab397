/**
 * The messages and fields of the Container Runtime Interface that the tests use. Names and numbers are those of
 * `runtime/v1/api.proto` in k8s.io/cri-api v0.36; what is left out, a runtime takes as unset.
 */
export const CRI_PROTO = `
syntax = "proto3";
package runtime.v1;

service RuntimeService {
  rpc Version(VersionRequest) returns (VersionResponse);
  rpc RunPodSandbox(RunPodSandboxRequest) returns (RunPodSandboxResponse);
  rpc StopPodSandbox(StopPodSandboxRequest) returns (Empty);
  rpc RemovePodSandbox(RemovePodSandboxRequest) returns (Empty);
  rpc ListPodSandbox(Empty) returns (ListPodSandboxResponse);
  rpc CreateContainer(CreateContainerRequest) returns (CreateContainerResponse);
  rpc StartContainer(StartContainerRequest) returns (Empty);
  rpc StopContainer(StopContainerRequest) returns (Empty);
  rpc RemoveContainer(RemoveContainerRequest) returns (Empty);
  rpc ListContainers(Empty) returns (ListContainersResponse);
  rpc ContainerStatus(ContainerStatusRequest) returns (ContainerStatusResponse);
  rpc ExecSync(ExecSyncRequest) returns (ExecSyncResponse);
}

message Empty {}

message VersionRequest { string version = 1; }
message VersionResponse {
  string version = 1;
  string runtime_name = 2;
  string runtime_version = 3;
}

enum NamespaceMode { POD = 0; CONTAINER = 1; NODE = 2; TARGET = 3; }
message NamespaceOption {
  NamespaceMode network = 1;
  NamespaceMode pid = 2;
  NamespaceMode ipc = 3;
}
message Int64Value { int64 value = 1; }

message PodSandboxMetadata {
  string name = 1;
  string uid = 2;
  string namespace = 3;
  uint32 attempt = 4;
}
message LinuxSandboxSecurityContext {
  NamespaceOption namespace_options = 1;
  bool privileged = 6;
}
message LinuxPodSandboxConfig {
  string cgroup_parent = 1;
  LinuxSandboxSecurityContext security_context = 2;
}
message PodSandboxConfig {
  PodSandboxMetadata metadata = 1;
  string hostname = 2;
  string log_directory = 3;
  map<string, string> labels = 6;
  map<string, string> annotations = 7;
  LinuxPodSandboxConfig linux = 8;
}
message RunPodSandboxRequest {
  PodSandboxConfig config = 1;
  string runtime_handler = 2;
}
message RunPodSandboxResponse { string pod_sandbox_id = 1; }
message StopPodSandboxRequest { string pod_sandbox_id = 1; }
message RemovePodSandboxRequest { string pod_sandbox_id = 1; }
message PodSandbox {
  string id = 1;
  PodSandboxMetadata metadata = 2;
}
message ListPodSandboxResponse { repeated PodSandbox items = 1; }

message ContainerMetadata {
  string name = 1;
  uint32 attempt = 2;
}
message ImageSpec { string image = 1; }
message KeyValue {
  string key = 1;
  bytes value = 2;
}
enum MountPropagation { PROPAGATION_PRIVATE = 0; PROPAGATION_HOST_TO_CONTAINER = 1; PROPAGATION_BIDIRECTIONAL = 2; }
message Mount {
  string container_path = 1;
  string host_path = 2;
  bool readonly = 3;
  MountPropagation propagation = 5;
}
message Capability { repeated string add_capabilities = 1; }
message LinuxContainerSecurityContext {
  Capability capabilities = 1;
  bool privileged = 2;
  NamespaceOption namespace_options = 3;
  Int64Value run_as_user = 5;
}
message LinuxContainerConfig { LinuxContainerSecurityContext security_context = 2; }
message ContainerConfig {
  ContainerMetadata metadata = 1;
  ImageSpec image = 2;
  repeated string command = 3;
  repeated string args = 4;
  repeated KeyValue envs = 6;
  repeated Mount mounts = 7;
  map<string, string> labels = 9;
  map<string, string> annotations = 10;
  string log_path = 11;
  LinuxContainerConfig linux = 15;
}
message CreateContainerRequest {
  string pod_sandbox_id = 1;
  ContainerConfig config = 2;
  PodSandboxConfig sandbox_config = 3;
}
message CreateContainerResponse { string container_id = 1; }
message StartContainerRequest { string container_id = 1; }
message StopContainerRequest {
  string container_id = 1;
  int64 timeout = 2;
}
message RemoveContainerRequest { string container_id = 1; }

enum ContainerState { CONTAINER_CREATED = 0; CONTAINER_RUNNING = 1; CONTAINER_EXITED = 2; CONTAINER_UNKNOWN = 3; }
message Container {
  string id = 1;
  string pod_sandbox_id = 2;
  ContainerMetadata metadata = 3;
  ContainerState state = 6;
}
message ListContainersResponse { repeated Container containers = 1; }
message ContainerStatusRequest {
  string container_id = 1;
  bool verbose = 2;
}
message ContainerStatus {
  string id = 1;
  ContainerMetadata metadata = 2;
  ContainerState state = 3;
  int32 exit_code = 7;
  string reason = 10;
  string message = 11;
}
message ContainerStatusResponse {
  ContainerStatus status = 1;
  map<string, string> info = 2;
}

message ExecSyncRequest {
  string container_id = 1;
  repeated string cmd = 2;
  int64 timeout = 3;
}
message ExecSyncResponse {
  bytes stdout = 1;
  bytes stderr = 2;
  int32 exit_code = 3;
}
`;
