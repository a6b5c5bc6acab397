import type { ExecOrigin } from './exec-origin.ts';
import type { ExecutablePath } from './executable-path.ts';
import { isObject } from './schema.ts';

/** Containers, and commands of one container, that are looked at: a pod has neither so many. */
const MAX_PARTS = 1_000;
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
const HOOKS = ['postStart', 'preStop'] as const;
const CONTAINER_LISTS = ['containers', 'initContainers'] as const;

/** Programs that serve many commands, each a link to the one file that the kernel names. */
const MULTI_CALL = new Set(['busybox', 'coreutils', 'toybox']);
/** What `sh` is a link to. */
const SHELLS = new Set(['ash', 'bash', 'dash', 'ksh', 'mksh', 'yash', 'zsh']);
/** `python3` is a link to `python3.12`. */
const VERSION = /^[-.0-9]+$/;

/**
 * What kubelet runs inside the containers of a pod: the first word of each exec probe and lifecycle hook, by container
 * name. `spec` is a pod's as JSON, tenant input of any shape.
 */
export function hookCommands(spec: unknown): ReadonlyMap<string, readonly string[]> {
  const commands = new Map<string, readonly string[]>();
  if (!isObject(spec)) return commands;
  for (const list of CONTAINER_LISTS) {
    const containers: unknown = spec[list];
    if (!Array.isArray(containers)) continue;
    for (const container of containers.slice(0, MAX_PARTS) as unknown[]) {
      if (!isObject(container) || typeof container['name'] !== 'string') continue;
      const words = wordsOf(container);
      if (words.length > 0) commands.set(container['name'], words);
    }
  }
  return commands;
}

/**
 * The origin of a learned exec. The kernel tells what entered from outside; that it was a probe or a hook, and not a
 * person, is told by its program alone, so a person who runs the program of a probe looks like the probe.
 * @param commands of the container, see {@link hookCommands}
 */
export function learnedOrigin(
  origin: ExecOrigin,
  path: ExecutablePath,
  commands: readonly string[],
): ExecOrigin {
  return origin === 'exec' && commands.some((command) => isProgramOf(command, path)) ? 'probe' : origin;
}

function wordsOf(container: Readonly<Record<string, unknown>>): string[] {
  const { lifecycle } = container;
  const handlers = [
    ...PROBES.map((probe) => container[probe]),
    ...(isObject(lifecycle) ? HOOKS.map((hook) => lifecycle[hook]) : []),
  ];
  return handlers.flatMap((handler) => {
    const exec = isObject(handler) ? handler['exec'] : undefined;
    const command: unknown = isObject(exec) ? exec['command'] : undefined;
    const word: unknown = Array.isArray(command) ? command[0] : undefined;
    return typeof word === 'string' && word !== '' ? [word] : [];
  });
}

/** A command is found by `PATH` and through links; the kernel names the file at the end. */
function isProgramOf(command: string, path: ExecutablePath): boolean {
  if (command === path) return true;
  const name = baseName(command);
  const file = baseName(path);
  if (file === name || MULTI_CALL.has(file)) return true;
  if (name === 'sh') return SHELLS.has(file);
  return name !== '' && file.startsWith(name) && VERSION.test(file.slice(name.length));
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
