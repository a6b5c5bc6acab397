import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { formatFieldError, quote } from '@runtime-enforcer/api/field-error';
import { API_VERSION } from '@runtime-enforcer/api/keys';
import {
  parsePolicyTest,
  POLICY_TEST_KIND,
  type PolicyTest,
  runPolicyTest,
} from '@runtime-enforcer/api/policy-test';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { WorkloadPolicy } from '@runtime-enforcer/api/workload-policy';
import { readYaml } from '@runtime-enforcer/api/yaml-document';
import type { RunCommand } from '../command-context.ts';
import { EXIT_FINDING, EXIT_OK } from '../exit-code.ts';
import { readInput, unreadable } from '../input-file.ts';
import { textAt } from '../output/json-field.ts';
import { counted } from '../output/named.ts';
import { PluginError, UsageError } from '../plugin-error.ts';
import type { Terminal } from '../terminal.ts';
import { policiesFromFile } from './compare.ts';
import { junitReport, type TestSuite } from './junit.ts';

const YAML = /\.ya?ml$/;
const MAX_FILES = 10_000;

/** `test DIR`: runs every PolicyTest below a directory, without a cluster. Exit code 3 when one fails. */
export const testPolicies: RunCommand = async ({ terminal }, [operand = ''], options) => {
  const format = options.text('output') ?? 'text';
  if (format !== 'text' && format !== 'junit') {
    throw new UsageError(`invalid output ${quote(format)}, expected "text" or "junit"`);
  }
  const files = await yamlFiles(operand);
  const suites: TestSuite[] = [];
  for (const file of files) suites.push(...(await suitesOf(file)));
  if (suites.length === 0) {
    throw new PluginError(
      `${quote(operand)} holds no policy tests (${counted(files.length, 'YAML file')})`,
      `write documents with apiVersion ${API_VERSION} and kind ${POLICY_TEST_KIND}`,
    );
  }
  const cases = suites.flatMap((suite) => suite.cases);
  const failed = cases.filter(({ failure }) => failure !== undefined).length;
  const report = junitReport(suites);
  const junit = options.text('junit');
  if (junit !== undefined) await writeFile(junit, report);
  if (format === 'junit') terminal.write(report);
  else {
    printSuites(terminal, suites);
    terminal.write(`${counted(cases.length - failed, 'exec')} as expected, ${failed} not.\n`);
  }
  return failed > 0 ? EXIT_FINDING : EXIT_OK;
};

/** A file as it is, or the YAML files below a directory in the order of their names. */
async function yamlFiles(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile() && YAML.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .toSorted();
    if (files.length <= MAX_FILES) return files;
  } catch (cause) {
    throw unreadable(path, cause);
  }
  throw new PluginError(`${quote(path)} holds more than ${MAX_FILES} YAML files`, 'give a smaller directory');
}

/** The tests of a file, each run; what is of another kind, such as the policies themselves, is left alone. */
async function suitesOf(file: string): Promise<readonly TestSuite[]> {
  const yaml = readYaml(await readInput(file));
  const shown = relative(process.cwd(), file);
  if (!yaml.ok) {
    const [error] = yaml.errors;
    const place = error === undefined ? shown : `${shown}:${error.line}:${error.column}`;
    throw new PluginError(`${escapeUnprintable(place)}: ${error?.message ?? 'it is not YAML'}`);
  }
  const suites: TestSuite[] = [];
  for (const { data, locate } of yaml.documents) {
    if (textAt(data, 'kind') !== POLICY_TEST_KIND) continue;
    const parsed = parsePolicyTest(data);
    if (!parsed.ok) {
      const errors = parsed.errors.map((error) => {
        const { line, column } = locate(error.segments);
        return `${escapeUnprintable(shown)}:${line}:${column}: ${formatFieldError(error)}`;
      });
      throw new PluginError(errors.join('\n'));
    }
    const policy = await policyOfTest(file, parsed.value);
    suites.push({ name: parsed.value.name, file: shown, cases: runPolicyTest(parsed.value, policy.spec) });
  }
  return suites;
}

async function policyOfTest(file: string, test: PolicyTest): Promise<WorkloadPolicy> {
  const policies = await policiesFromFile(resolve(dirname(file), test.policy));
  const [first] = policies;
  const { policyName } = test;
  const found =
    policyName === undefined && policies.length === 1
      ? first
      : policies.find(({ metadata }) => metadata.name === policyName);
  if (found !== undefined) return found;
  const names = policies.map(({ metadata }) => metadata.name).join(', ');
  throw new PluginError(
    `policy test ${quote(test.name)}: ${quote(test.policy)} holds the policies ${names}`,
    'say which one with policyName',
  );
}

function printSuites({ write, colors }: Terminal, suites: readonly TestSuite[]): void {
  for (const { name, file, cases } of suites) {
    write(`${colors.bold(escapeUnprintable(name))} (${escapeUnprintable(file)})\n`);
    for (const { title, failure } of cases) {
      const shown = escapeUnprintable(title);
      if (failure === undefined) write(`  ${colors.green('ok')}    ${shown}\n`);
      else write(`  ${colors.red('FAIL')}  ${shown}\n        ${escapeUnprintable(failure)}\n`);
    }
  }
}
