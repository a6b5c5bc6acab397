import { modeFromWire, modeToWire } from './policy-codec.ts';
import type { ReportedBinding } from './reported.ts';
import type { WireLong } from './wire-values.ts';

/** `KernelBinding` of proto/agent.proto. */
export interface WireBinding extends Omit<ReportedBinding, 'cgroupId' | 'slotCgroupId' | 'mode'> {
  readonly cgroupId: WireLong;
  readonly slotCgroupId: WireLong;
  readonly mode: number;
}

export function bindingToWire(binding: ReportedBinding): WireBinding {
  return { ...binding, mode: modeToWire(binding.mode) };
}

export function bindingFromWire({ cgroupId, slotCgroupId, mode, ...binding }: WireBinding): ReportedBinding {
  return {
    ...binding,
    cgroupId: BigInt(cgroupId),
    slotCgroupId: BigInt(slotCgroupId),
    mode: modeFromWire(mode),
  };
}
