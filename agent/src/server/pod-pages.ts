import type { PodListPage, PodListRequest } from '@runtime-enforcer/rpc/observer-service';
import type { ReportedContainer, ReportedPod } from '@runtime-enforcer/rpc/reported';
import { encodedBytesAtMost } from '@runtime-enforcer/rpc/page-size';
import type { BoundContainer } from '../containers/bound-container.ts';
import type { ObserverSources } from './observer-server.ts';
import { fillPage } from './page-limits.ts';
import { tokenOf, tokenParts } from './page-token.ts';

/** A pod's labels, and its containers, take up to so many bytes of a page; the rest is left out. */
const MAX_LABEL_BYTES = 64 * 1024;
const MAX_CONTAINERS = 1_000;

/** The page of pods, ordered by namespace, name and uid, that a request asks for. */
export function podPage(
  { containers, kernel }: Pick<ObserverSources, 'containers' | 'kernel'>,
  request: PodListRequest,
): PodListPage {
  const after = tokenParts(request.pageToken, 3);
  const reportedContainer = (container: BoundContainer) =>
    reported(container, kernel?.presentCgroupId(container) ?? 0n);
  const pods = podsOf(containers(), request)
    .map((own) => ({ own, place: placeOf(own) }))
    .filter(({ place }) => after === undefined || compare(place, after) > 0)
    .sort((one, other) => compare(one.place, other.place));
  const { page, full } = fillPage(pods, ({ own }) => podOf(own, reportedContainer));
  const last = full ? pods[page.length - 1]?.place : undefined;
  return { pods: page, nextPageToken: last === undefined ? '' : tokenOf(last) };
}

/** The containers of one pod. */
type PodContainers = [BoundContainer, ...BoundContainer[]];

function podsOf(containers: Iterable<BoundContainer>, wanted: PodListRequest): PodContainers[] {
  const byUid = new Map<string, PodContainers>();
  for (const container of containers) {
    if (wanted.namespace !== '' && container.namespace !== wanted.namespace) continue;
    if (wanted.podName !== '' && container.podName !== wanted.podName) continue;
    const known = byUid.get(container.podUid);
    if (known === undefined) byUid.set(container.podUid, [container]);
    else known.push(container);
  }
  return [...byUid.values()];
}

function placeOf([{ namespace, podName, podUid }]: PodContainers): readonly string[] {
  return [namespace, podName, podUid];
}

function podOf(
  containers: PodContainers,
  reportedContainer: (container: BoundContainer) => ReportedContainer,
): ReportedPod {
  const [{ podUid, podName, namespace, workload, labels }] = containers;
  const shownLabels = boundedLabels(labels);
  const shown = containers.slice(0, MAX_CONTAINERS).map(reportedContainer);
  return {
    uid: podUid,
    name: podName,
    namespace,
    workloadName: workload.name,
    workloadKind: workload.kind,
    labels: shownLabels,
    containers: shown,
    omitted: labels.size - shownLabels.size + containers.length - shown.length,
  };
}

function boundedLabels(labels: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const shown = new Map<string, string>();
  let bytes = 0;
  for (const [key, value] of labels) {
    bytes += encodedBytesAtMost(key) + encodedBytesAtMost(value);
    if (bytes > MAX_LABEL_BYTES) break;
    shown.set(key, value);
  }
  return shown;
}

function reported(container: BoundContainer, presentCgroupId: bigint): ReportedContainer {
  const { containerId, containerName, cgroupId, state, policy = '', listed, image, pid } = container;
  const { slot, generation, mountNamespace, policyId } = container;
  return {
    ...{ id: containerId, name: containerName, cgroupId, state, policyName: policy, listed, image, pid },
    ...{ slot, generation, mountNamespace, policyId, presentCgroupId },
  };
}

/** By code units, as it is on every machine. */
function compare(one: readonly string[], other: readonly string[]): number {
  for (const [index, text] of one.entries()) {
    const against = other[index] ?? '';
    if (text !== against) return text < against ? -1 : 1;
  }
  return 0;
}
