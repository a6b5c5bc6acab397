import { planLoad, type LoadFacts, type LoadPlan } from './load-plan.ts';
import { kernelMaps, sharedMaps, type KernelMaps } from './maps.ts';
import type { Native } from './native.ts';
import { ENFORCER_OBJECT } from './native-test-objects.ts';

export const EXAMPLE_FACTS: LoadFacts = {
  hostMountNamespace: 4_026_531_841,
  cgroupSubsystem: -1,
  largeKeys: true,
  typedCast: true,
};

/** For tests: the real maps of the kernel program, without a program. */
export function openExampleMaps(
  native: Native,
  { capacity = 1024, facts = {} }: { capacity?: number; facts?: Partial<LoadFacts> } = {},
): { readonly maps: KernelMaps; readonly plan: LoadPlan; readonly close: () => void } {
  const plan = planLoad({ ...EXAMPLE_FACTS, ...facts }, [], capacity);
  const object = native.load(ENFORCER_OBJECT, {
    programs: [],
    maxEntries: plan.maxEntries,
    keySizes: plan.keySizes,
  });
  return { maps: kernelMaps(sharedMaps(object), plan), plan, close: () => object.close() };
}

/** A log that keeps what it is told. */
export function exampleLog(): {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: object }[];
  readonly log: Record<'debug' | 'info' | 'warn' | 'error', (fields: object, message: string) => void>;
} {
  const lines: { level: string; message: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, message, fields });
  return { lines, log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}
