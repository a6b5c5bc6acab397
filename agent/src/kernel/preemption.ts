import type { NodeFacts } from './node-facts.ts';

/** How the kernel may interrupt a task inside the kernel. 'unknown': treated like one that preempts. */
export type Preemption = 'none' | 'voluntary' | 'full' | 'lazy' | 'unknown';

const MODELS: readonly string[] = ['none', 'voluntary', 'full', 'lazy'] satisfies Preemption[];
const BY_CONFIG: readonly (readonly [string, Preemption])[] = [
  ['CONFIG_PREEMPT_NONE=y', 'none'],
  ['CONFIG_PREEMPT_VOLUNTARY=y', 'voluntary'],
  ['CONFIG_PREEMPT_LAZY=y', 'lazy'],
  ['CONFIG_PREEMPT=y', 'full'],
];

/**
 * The model in force. The scheduler's own file says it; else the boot option, if the kernel obeys one; else the
 * kernel's configuration. A kernel whose version string has no PREEMPT word was built without preemption, none or
 * voluntary (scripts/mkcompile_h).
 */
export function preemptionOf(
  facts: Pick<NodeFacts, 'version' | 'schedPreempt' | 'commandLine' | 'kernelConfig'>,
): Preemption {
  const active = asModel(/\((\w+)\)/.exec(facts.schedPreempt ?? '')?.[1]);
  if (active !== undefined) return active;
  if (/\bPREEMPT_RT\b/.test(facts.version)) return 'full';
  if (/\bPREEMPT_DYNAMIC\b/.test(facts.version))
    return lastBootOption(facts.commandLine) ?? configured(facts.kernelConfig) ?? 'unknown';
  if (/\bPREEMPT\b/.test(facts.version)) return configured(facts.kernelConfig) ?? 'full';
  if (!/\bSMP\b/.test(facts.version)) return configured(facts.kernelConfig) ?? 'unknown';
  return configured(facts.kernelConfig) ?? 'voluntary';
}

/** Whether another task may run while a program of ours is interrupted on the same CPU. */
export function mayPreempt(preemption: Preemption): boolean {
  return preemption !== 'none' && preemption !== 'voluntary';
}

function asModel(word: string | undefined): Preemption | undefined {
  return word !== undefined && MODELS.includes(word) ? (word as Preemption) : undefined;
}

function lastBootOption(commandLine = ''): Preemption | undefined {
  return asModel(Array.from(commandLine.matchAll(/(?:^|\s)preempt=(\w+)(?=\s|$)/g)).at(-1)?.[1]);
}

function configured(config: string | undefined): Preemption | undefined {
  const lines = new Set(config?.split('\n'));
  return BY_CONFIG.find(([line]) => lines.has(line))?.[1];
}
