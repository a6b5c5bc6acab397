import { escapeUnprintable } from '@runtime-enforcer/api/printable-text';
import type { RunCommand } from '../command-context.ts';
import { diagnose } from '../doctor/diagnose.ts';
import type { Finding } from '../doctor/finding.ts';
import { gatherFacts } from '../doctor/gather-facts.ts';
import { EXIT_FINDING, EXIT_OK } from '../exit-code.ts';
import { counted } from '../output/named.ts';
import { parseOutputFormat } from '../output/output-format.ts';
import { printData } from '../output/print.ts';

/** `doctor`: what is wrong, and the command that repairs it. Notes alone are no reason for exit code 3. */
export const doctor: RunCommand = async ({ terminal, connect, now }, _operands, options) => {
  const format = parseOutputFormat(options.text('output'), ['table', 'json', 'yaml', 'jsonpath']);
  if (terminal.interactive) terminal.note('Looking at the cluster ...');
  const findings = diagnose(await gatherFacts(await connect(), now()));
  const wrong = findings.filter(({ severity }) => severity !== 'note').length;
  const exitCode = wrong > 0 ? EXIT_FINDING : EXIT_OK;
  if (format.kind === 'json' || format.kind === 'yaml' || format.kind === 'jsonpath') {
    printData(terminal, format, findings);
    return exitCode;
  }
  const { red, yellow, dim, green } = terminal.colors;
  const paint: Readonly<Record<Finding['severity'], (text: string) => string>> = {
    error: red,
    warning: yellow,
    note: dim,
  };
  for (const { severity, subject, message, repair } of findings) {
    terminal.write(`${paint[severity](severity.padEnd(7))} ${escapeUnprintable(`${subject}: ${message}`)}\n`);
    if (repair !== undefined) terminal.write(`        ${escapeUnprintable(repair)}\n`);
  }
  terminal.write(wrong === 0 ? `${green('Nothing is wrong.')}\n` : `${counted(wrong, 'thing')} to repair.\n`);
  return exitCode;
};
