import { describe, expect, it } from 'vitest';
import { missingLine, playedSections } from './played-document.ts';

describe('playedSections', () => {
  it('takes sentences, commands and what they print from sections that have commands', () => {
    const page = [
      ...['# Page', '', 'Before.', '', '## One', '', 'Two', 'lines.', '', '```console'],
      ...["$ kubectl apply -f - <<'END'", '$ no: command', 'END', 'created', '', '$ kubectl get pods', '```'],
      ...['```yaml', 'not: shown', '```', 'After.', '', '## Two', '', 'Only words.', ''],
    ].join('\n');
    expect(playedSections(page)).toEqual([
      {
        title: 'One',
        parts: [
          'Two lines.',
          { command: "kubectl apply -f - <<'END'\n$ no: command\nEND", expected: ['created'] },
          { command: 'kubectl get pods', expected: [] },
          'After.',
        ],
      },
    ]);
  });

  it.each(['created', "$ kubectl apply -f - <<'END'\na: b"])('refuses the block %j', (block) => {
    expect(() => playedSections(`## One\n\n\`\`\`console\n${block}\n\`\`\`\n`)).toThrow(/^expected/);
  });
});

describe('missingLine', () => {
  it('finds lines in their order, with anything for an ellipsis, and any white space', () => {
    const printed = 'NAME     READY\nweb-1    1/1   Running\nother    (0.5)\n';
    expect(missingLine([], printed)).toBeUndefined();
    expect(missingLine(['web-… 1/1 …', 'other (0.5)'], printed)).toBeUndefined();
    expect(missingLine(['other (0.5)', 'web-… 1/1 …'], printed)).toBe('web-… 1/1 …');
    expect(missingLine(['other (0_5)'], printed)).toBe('other (0_5)');
    expect(missingLine(['…eb…1/1…', '…0.5…'], printed)).toBeUndefined();
    expect(missingLine(['web-1…1 1/1 Running'], printed)).toBe('web-1…1 1/1 Running');
    expect(missingLine(['eb-1 1/1 Running'], printed)).toBe('eb-1 1/1 Running');
  });
});
