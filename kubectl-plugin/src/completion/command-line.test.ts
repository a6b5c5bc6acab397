import { describe, expect, it } from 'vitest';
import { ROOT } from '../tree/root.ts';
import { completable } from './command-line.ts';

const complete = (line: string) => completable(line.split(' '), ROOT);
const words = (line: string) => complete(line).candidates.map(({ word }) => word);

describe('completable', () => {
  it('knows commands, and those of a group', () => {
    expect(words('')).toContain('promote');
    expect(words('policy ')).toEqual(expect.arrayContaining(['list', 'allow', 'ack']));
    expect(words('policy show ')).toEqual(['protection']);
  });

  it.each([
    ['promote ', 'proposals'],
    ['promote a ', 'proposals'],
    ['policy show ', 'policies'],
    ['policy allow p ', 'policyContainers'],
    ['policy allow p c ', 'allowablePaths'],
    ['policy allow p c /a ', 'allowablePaths'],
    ['policy deny p c ', 'allowedPaths'],
    ['policy ack p ', 'violationIds'],
    ['bind ', 'workloads'],
    ['bind deploy/web ', 'policies'],
    ['explain web-0 /x -c ', 'podContainers'],
    ['policy list -n ', 'namespaces'],
    ['--context ', 'contexts'],
    ['policy create -f ', 'files'],
    ['policy -n shop allow --dry-run p ', 'policyContainers'],
  ])('asks in "%s" for %s', (line, source) => {
    expect(complete(line).source).toBe(source);
  });

  it('offers options once, and values of those that have a few', () => {
    expect(words('policy list --')).toEqual(
      expect.arrayContaining(['--all-namespaces', '--output', '--context']),
    );
    expect(words('policy list -A --')).not.toContain('--all-namespaces');
    expect(words('promote --mode ')).toEqual(['monitor', 'protect']);
    expect(complete('promote --mode=p')).toMatchObject({
      prefix: 'p',
      candidates: [{ word: 'monitor' }, { word: 'protect' }],
    });
    expect(words('policy list -o ')).toContain('jsonpath=');
  });

  it('keeps what was given so far', () => {
    const { operands, values } = complete('policy allow -n shop p c /a ');
    expect(operands).toEqual(['p', 'c', '/a']);
    expect(values.get('namespace')).toEqual(['shop']);
  });

  it('offers nothing behind the last operand, or to an option that says anything', () => {
    expect(complete('policy protect p ')).toMatchObject({ candidates: [] });
    expect(complete('policy protect p ')).not.toHaveProperty('source');
    expect(complete('policy ack p 1 --reason ')).toMatchObject({ candidates: [] });
  });
});
