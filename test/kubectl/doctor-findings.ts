import { expect } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import type { PluginRunner } from './plugin-runner.ts';

const GREEN_BUDGET_MS = 60_000;

/** What doctor tells as data. */
export interface Finding {
  readonly check: string;
  readonly severity: 'error' | 'warning' | 'note';
  readonly subject: string;
  readonly message: string;
  readonly repair?: string;
}

/** A person who asks doctor, and does what it says. */
export interface DoctorVisits {
  /** What doctor finds, and the exit code that it has for that. */
  diagnose(): Promise<readonly Finding[]>;
  /** The one finding that is wanted, once it is there. */
  found(text: string): Promise<Finding>;
  /** Runs a repair as it was told. @param more what doctor cannot know, behind it */
  repaired(finding: Finding | undefined, more?: string): Promise<void>;
  /** Waits until doctor finds nothing. */
  green(): Promise<void>;
}

/** A finding on one line. */
export function findingLine({ severity, subject, message }: Finding): string {
  return `${severity} ${subject}: ${message}`;
}

export function doctorVisits(shell: Pick<PluginRunner, 'plugin' | 'command'>): DoctorVisits {
  async function diagnose(): Promise<readonly Finding[]> {
    const { code, stdout } = await shell.plugin('doctor -o json');
    const findings = JSON.parse(stdout) as readonly Finding[];
    expect(code).toBe(findings.some(({ severity }) => severity !== 'note') ? 3 : 0);
    return findings;
  }
  return {
    diagnose,
    async found(text) {
      let seen: readonly Finding[] = [];
      return await eventually(
        () => `doctor finds: ${text}; it finds: ${seen.map(findingLine).join('\n')}`,
        async () => {
          seen = await diagnose();
          return seen.find((finding) => findingLine(finding).includes(text));
        },
      );
    },
    async repaired(finding, more = '') {
      const command = finding?.repair ?? 'false';
      const { code, stderr } = await shell.command(`${command}${more}`);
      expect(stderr.replaceAll(/^WARNING.*\n/gm, '')).toBe('');
      expect(code).toBe(0);
    },
    async green() {
      let left: readonly Finding[] = [];
      await eventually(
        () => `doctor finds nothing; it still finds: ${left.map(findingLine).join('\n')}`,
        async () => {
          left = await diagnose();
          return left.length === 0 ? true : undefined;
        },
        GREEN_BUDGET_MS,
      );
    },
  };
}
