import type { PolicyTestCase } from '@runtime-enforcer/api/policy-test';
import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';

/** The cases of one policy test. */
export interface TestSuite {
  readonly name: string;
  readonly file: string;
  readonly cases: readonly PolicyTestCase[];
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** A report in the form that CI systems read (JUnit's XML, as Jenkins and GitLab take it). */
export function junitReport(suites: readonly TestSuite[]): string {
  const all = suites.flatMap(({ cases }) => cases);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    `<testsuites ${counts(all)}>\n`,
    ...suites.map(suiteXml),
    '</testsuites>\n',
  ].join('');
}

function suiteXml({ name, file, cases }: TestSuite): string {
  const lines = cases.map(({ title, failure }) => {
    const open = `    <testcase name=${attribute(title)} classname=${attribute(name)}`;
    if (failure === undefined) return `${open}/>\n`;
    return `${open}>\n      <failure message=${attribute(failure)}/>\n    </testcase>\n`;
  });
  return [
    `  <testsuite name=${attribute(name)} file=${attribute(file)} ${counts(cases)}>\n`,
    ...lines,
    '  </testsuite>\n',
  ].join('');
}

function counts(cases: readonly PolicyTestCase[]): string {
  const failures = cases.filter(({ failure }) => failure !== undefined).length;
  return `tests="${cases.length}" failures="${failures}"`;
}

function attribute(text: string): string {
  const escaped = escapeUnprintable(text).replaceAll(
    /[&<>"']/g,
    (character) => ENTITIES[character] ?? character,
  );
  return `"${escaped}"`;
}
