// Command nri-runtime is a container runtime's side of NRI without containers: NRI's own adaptation package, as
// containerd and CRI-O embed it, serving a made-up state. It is driven by lines of JSON on its standard input, answers
// with lines of JSON on its standard output, logs what NRI logs on its standard error, and ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

const longestCommandBytes = 1 << 20

// command is a line of input: Do is "start" or "remove", Container the index of a container of the state.
type command struct {
	ID        int    `json:"id"`
	Do        string `json:"do"`
	Container int    `json:"container"`
}

// told is a line of output: the answer to the command with the same ID, or an event.
type told struct {
	ID         int     `json:"id,omitempty"`
	Event      string  `json:"event,omitempty"`
	DurationMs float64 `json:"durationMs"`
	Error      string  `json:"error,omitempty"`
}

type output struct {
	sync.Mutex
	encoder *json.Encoder
}

func (o *output) tell(line told, start time.Time, err error) {
	line.DurationMs = float64(time.Since(start).Microseconds()) / 1_000
	if err != nil {
		line.Error = err.Error()
	}
	o.Lock()
	defer o.Unlock()
	if err := o.encoder.Encode(line); err != nil {
		fail(err)
	}
}

func main() {
	socket := flag.String("socket", "", "path of the socket to listen on")
	empty := flag.String("empty", "", "an empty directory, where no plugins are")
	requestTimeout := flag.Duration("request-timeout", adaptation.DefaultPluginRequestTimeout, "time for each answer")
	podCount := flag.Int("pods", 1, "how many pods there are")
	containerCount := flag.Int("containers", 1, "how many containers there are, spread over the pods")
	padding := flag.Int("padding", 0, "bytes of an annotation that each container has")
	suffix := flag.String("suffix", "", "end of every pod's and container's name")
	flag.Parse()

	out := &output{encoder: json.NewEncoder(os.Stdout)}
	pods, containers := makeState(*podCount, *containerCount, *padding, *suffix)
	adaptation.SetPluginRequestTimeout(*requestTimeout)
	synchronize := func(ctx context.Context, callback adaptation.SyncCB) error {
		start := time.Now()
		_, err := callback(ctx, pods, containers)
		out.tell(told{Event: "synchronized"}, start, err)
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
		return nil, fmt.Errorf("this runtime updates no containers")
	}
	runtime, err := adaptation.New("nri-runtime", "v1", synchronize, update,
		adaptation.WithSocketPath(*socket),
		adaptation.WithPluginPath(*empty),
		adaptation.WithPluginConfigPath(*empty))
	if err != nil {
		fail(err)
	}
	if err := runtime.Start(); err != nil {
		fail(err)
	}
	out.tell(told{Event: "listening"}, time.Now(), nil)

	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestCommandBytes)
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fail(err)
		}
		if asked.Container < 0 || asked.Container >= len(containers) {
			fail(fmt.Errorf("there is no container %d", asked.Container))
		}
		container := containers[asked.Container]
		pod := pods[asked.Container%len(pods)]
		go func() {
			start := time.Now()
			out.tell(told{ID: asked.ID}, start, relay(runtime, asked.Do, pod, container))
		}()
	}
	runtime.Stop()
}

func relay(runtime *adaptation.Adaptation, do string, pod *api.PodSandbox, container *api.Container) error {
	switch do {
	case "start":
		return runtime.StartContainer(context.Background(),
			&adaptation.StartContainerRequest{Pod: pod, Container: container})
	case "remove":
		return runtime.RemoveContainer(context.Background(),
			&adaptation.RemoveContainerRequest{Pod: pod, Container: container})
	}
	return fmt.Errorf("unknown command %q", do)
}

func makeState(podCount, containerCount, padding int, suffix string) ([]*api.PodSandbox, []*api.Container) {
	pods := make([]*api.PodSandbox, podCount)
	for index := range pods {
		id := fmt.Sprintf("pod-%d", index)
		pods[index] = &api.PodSandbox{
			Id:        id,
			Name:      id + suffix,
			Uid:       "uid-" + id,
			Namespace: "shop",
			Labels:    map[string]string{"app": id},
			Linux:     &api.LinuxPodSandbox{CgroupParent: "/kubepods/" + id},
		}
	}
	pad := strings.Repeat("x", padding)
	containers := make([]*api.Container, containerCount)
	for index := range containers {
		id := fmt.Sprintf("container-%d", index)
		pod := pods[index%podCount]
		containers[index] = &api.Container{
			Id:           id,
			PodSandboxId: pod.Id,
			Name:         id + suffix,
			State:        api.ContainerState_CONTAINER_RUNNING,
			Annotations:  map[string]string{"padding": pad},
			Args:         []string{"/bin/server"},
			Linux:        &api.LinuxContainer{CgroupsPath: pod.Linux.CgroupParent + "/" + id},
			Pid:          uint32(1_000 + index),
		}
	}
	return pods, containers
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
