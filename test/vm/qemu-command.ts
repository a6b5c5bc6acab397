/** `user`: the host is 10.0.2.2, and the guest 10.0.2.15 once it says so. Or a tap device of the host, by its name. */
export type GuestNetwork = 'user' | { readonly tap: string };

/** What QEMU is to boot. All paths are the host's. */
export interface Machine {
  kernelImage: string;
  initramfs: string;
  disk: string;
  /** Where the first serial port, the kernel's console, is written. */
  consoleLog: string;
  cpus: number;
  memoryMib: number;
  /** Added to the kernel's command line. */
  append: string;
  /** Guest time is the number of executed instructions, on one processor. */
  instructionCounted: boolean;
  /** A reset starts it anew. */
  mayReboot?: boolean;
  /** Where its network card leads, if it has one. */
  network?: GuestNetwork;
}

/**
 * A panic ends QEMU. The rest saves instructions, which are dear under emulation: no mitigations, no self-tests of
 * ciphers, no fifth level of page tables.
 */
const KERNEL_COMMAND_LINE =
  'console=ttyS0 quiet panic=-1 random.trust_cpu=on mitigations=off cryptomgr.notests no5lvl nokaslr';

/**
 * QEMU's arguments: a machine without display, and unless asked for without network, whose second serial port is QEMU's own standard output. It
 * ends when the guest powers off, and unless it may reboot when it resets or panics. Hardware virtualisation is never asked for: where it is nested it
 * may hang, and software emulation boots these guests in seconds everywhere.
 *
 * @throws RangeError for more than one processor together with an instruction-counted clock
 */
export function qemuArguments(machine: Machine): string[] {
  if (machine.instructionCounted && machine.cpus !== 1) {
    throw new RangeError(`cpus is ${machine.cpus}: an instruction-counted guest has exactly 1`);
  }
  const accelerator = machine.instructionCounted
    ? ['-accel', 'tcg', '-icount', 'shift=0,sleep=off']
    : ['-accel', 'tcg,thread=multi'];
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none'],
    ...(machine.mayReboot === true ? [] : ['-no-reboot']),
    ...['-machine', 'q35', ...accelerator, '-cpu', 'max'],
    ...['-smp', String(machine.cpus), '-m', String(machine.memoryMib)],
    ...['-kernel', machine.kernelImage, '-initrd', machine.initramfs],
    ...['-append', `${KERNEL_COMMAND_LINE} ${machine.append}`.trimEnd()],
    ...['-drive', `file=${escapeOption(machine.disk)},format=raw,if=virtio,snapshot=on,cache=unsafe`],
    ...networkArguments(machine.network),
    ...['-chardev', `file,id=console,path=${escapeOption(machine.consoleLog)}`, '-serial', 'chardev:console'],
    ...['-chardev', 'stdio,id=output,signal=off', '-serial', 'chardev:output'],
  ];
}

function networkArguments(network: GuestNetwork | undefined): string[] {
  if (network === undefined) return [];
  const behind =
    network === 'user' ? 'user' : `tap,ifname=${escapeOption(network.tap)},script=no,downscript=no`;
  return ['-netdev', `${behind},id=host`, '-device', 'virtio-net-pci,netdev=host,romfile='];
}

/** In QEMU's option lists a comma inside a value is written twice. */
function escapeOption(value: string): string {
  return value.replaceAll(',', ',,');
}
