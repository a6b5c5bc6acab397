import { describe, expect, it } from 'vitest';
import { type Machine, qemuArguments } from './qemu-command.ts';

const machine: Machine = {
  kernelImage: '/c/vmlinuz',
  initramfs: '/t/initramfs',
  disk: '/c/disk.img',
  consoleLog: '/t/console.log',
  cpus: 2,
  memoryMib: 1_024,
  append: '',
  instructionCounted: false,
};

const valueOf = (args: string[], option: string): string | undefined => args[args.indexOf(option) + 1];

describe('qemuArguments', () => {
  it('never asks for hardware virtualisation, devices of its own, or a changed disk', () => {
    const args = qemuArguments(machine);
    expect(args.join(' ')).not.toContain('kvm');
    expect(args).toContain('-nodefaults');
    expect(args).toContain('-no-reboot');
    expect(valueOf(args, '-accel')).toBe('tcg,thread=multi');
    expect(valueOf(args, '-smp')).toBe('2');
    expect(valueOf(args, '-m')).toBe('1024');
    expect(valueOf(args, '-drive')).toContain('snapshot=on');
  });

  it('starts a guest anew only where that is asked for', () => {
    expect(qemuArguments({ ...machine, mayReboot: true })).not.toContain('-no-reboot');
  });

  it('has a network only where that is asked for', () => {
    expect(qemuArguments(machine).join(' ')).not.toContain('virtio-net');
    expect(qemuArguments({ ...machine, network: 'user' }).join(' ')).toContain('virtio-net-pci');
  });

  it('puts the console on the first serial port and the output on the second', () => {
    const args = qemuArguments(machine);
    const serial = args.flatMap((arg, index) => (arg === '-serial' ? [args[index + 1]] : []));
    expect(serial).toEqual(['chardev:console', 'chardev:output']);
  });

  it('adds to the kernel command line, which keeps a panic from rebooting for ever', () => {
    expect(valueOf(qemuArguments({ ...machine, append: 'preempt=full' }), '-append')).toMatch(
      /panic=-1 .*preempt=full$/,
    );
    expect(valueOf(qemuArguments(machine), '-append')).toMatch(/\S$/);
  });

  it('counts instructions on one processor only', () => {
    const counted = qemuArguments({ ...machine, cpus: 1, instructionCounted: true });
    expect(valueOf(counted, '-accel')).toBe('tcg');
    expect(valueOf(counted, '-icount')).toBe('shift=0,sleep=off');
    expect(() => qemuArguments({ ...machine, instructionCounted: true })).toThrow('exactly 1');
  });

  it('keeps a comma in a path a part of the path', () => {
    expect(valueOf(qemuArguments({ ...machine, disk: '/a,b' }), '-drive')).toContain('file=/a,,b,');
  });
});
