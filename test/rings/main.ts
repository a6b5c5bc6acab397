import { pathToFileURL } from 'node:url';
import { join } from 'node:path';
import {
  type EndedRing,
  type RingReport,
  type RingResult,
  type RunRing,
  counts,
  ringReport,
  seconds,
  summaryLines,
} from './report.ts';
import { runStaticRing } from './static-ring.ts';
import { runUnitRing } from './unit-ring.ts';
import { REPOSITORY } from '../vm/repository.ts';

interface Ring {
  readonly name: string;
  readonly run: RunRing;
  /** True for a ring that runs only when it is asked for. */
  readonly isByNameOnly?: true;
}

/** The rings in the order in which they run: what is quick to fail comes first. */
const RINGS: readonly Ring[] = [
  { name: 'static', run: runStaticRing },
  { name: 'unit', run: runUnitRing },
  { name: 'api', run: ringModule('test/cluster/ring.ts') },
  { name: 'kubectl', run: ringModule('test/kubectl/ring.ts') },
  { name: 'plugin-output', run: ringModule('test/plugin-output/ring.ts') },
  { name: 'images', run: ringModule('images/ring.ts'), isByNameOnly: true },
  { name: 'controller', run: ringModule('test/controller/ring.ts') },
  { name: 'nri', run: ringModule('test/nri-runtime/ring.ts') },
  { name: 'telemetry', run: ringModule('test/telemetry/ring.ts') },
  { name: 'chart', run: ringModule('test/chart/ring.ts') },
  { name: 'kernel', run: ringModule('test/kernel/ring.ts') },
  { name: 'runtime', run: ringModule('test/runtime/ring.ts') },
  { name: 'demo', run: ringModule('test/demo/ring.ts') },
  { name: 'node', run: ringModule('test/node/ring.ts') },
  { name: 'e2e', run: ringModule('test/e2e/ring.ts') },
  { name: 'e2e-full', run: ringModule('test/e2e/full-ring.ts'), isByNameOnly: true },
  { name: 'conformance', run: ringModule('test/cri-conformance/ring.ts'), isByNameOnly: true },
  { name: 'compat', run: ringModule('test/cluster/compat-ring.ts'), isByNameOnly: true },
];

const USAGE_EXIT_CODE = 2;

/** A ring that lives in a module of its own, imported only when it runs: one that does not load fails alone. */
function ringModule(path: string): RunRing {
  return async (report) => {
    const module = (await import(pathToFileURL(join(REPOSITORY, path)).href)) as Readonly<
      Record<string, unknown>
    >;
    const { run } = module;
    if (typeof run !== 'function') throw new Error(`${path} exports no function \`run\``);
    return await (run as RunRing)(report);
  };
}

async function runRing(name: string, run: RunRing, write: (line: string) => void): Promise<EndedRing> {
  const report = ringReport(name, write);
  const start = performance.now();
  write(`■ ${name}`);
  const result = await resultOf(run, report, start);
  const durationMs = performance.now() - start;
  write(`■ ${name}: ${counts(result)} (${seconds(durationMs)})\n`);
  return { result, durationMs };
}

async function resultOf(run: RunRing, report: RingReport, start: number): Promise<RingResult> {
  try {
    const result = await run(report);
    if (result.passed + result.failed + result.skipped > 0) return result;
    report.failed('the ring', performance.now() - start, 'it ran no test');
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    report.failed('the ring', performance.now() - start, message);
  }
  return report.result();
}

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.filter((name) => RINGS.every((ring) => ring.name !== name));
  if (unknown.length > 0) {
    console.error(
      `no such ring: ${unknown.join(', ')}; there are: ${RINGS.map(({ name }) => name).join(', ')}`,
    );
    return USAGE_EXIT_CODE;
  }
  const total = { passed: 0, failed: 0, skipped: 0 };
  const ended: EndedRing[] = [];
  for (const { name, run, isByNameOnly = false } of RINGS) {
    if (names.length > 0 ? !names.includes(name) : isByNameOnly) continue;
    const ring = await runRing(name, run, (line) => console.log(line));
    ended.push(ring);
    const { result } = ring;
    total.passed += result.passed;
    total.failed += result.failed;
    total.skipped += result.skipped;
  }
  for (const line of summaryLines(ended)) console.log(line);
  console.log(`\n${counts(total)}`);
  return total.failed > 0 || total.passed === 0 ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
