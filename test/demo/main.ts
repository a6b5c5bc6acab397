import { DEMO_KERNEL, playDemoInGuest } from './guest-demo.ts';

/** Returns the exit code: 0 only if everything happened that the demo tells. */
async function main(): Promise<number> {
  const start = performance.now();
  process.stdout.write(
    `Booting Debian's kernel ${DEMO_KERNEL} with containerd and our agent in a virtual machine ...\n`,
  );
  const result = await playDemoInGuest({ onLine: (line) => process.stdout.write(`${line}\n`) });
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  if (result.exitCode === 0) {
    process.stdout.write(`\nDone in ${seconds} s, with the time that the machine took to boot.\n`);
    return 0;
  }
  process.stderr.write(
    `\nThe demo failed after ${seconds} s. The machine's console:\n${result.consoleLog}\n`,
  );
  return 1;
}

process.exitCode = await main();
