import assert from 'node:assert/strict';
import type { KubeObject } from '@runtime-enforcer/kube/kube-object';
import type { CommandResult } from '../kubectl/plugin-runner.ts';
import { eventually } from '../runtime/eventually.ts';
import type { WholeCluster } from './whole-cluster.ts';

const SEEN_BUDGET_MS = 90_000;
/** Longer than any command here is told to wait. */
const COMMAND_LIMIT_MS = 240_000;

/** How a command in a container ended. */
export interface ExecResult {
  /** That of `kubectl exec`. */
  readonly code: number | null;
  readonly text: string;
}

/** Who uses the cluster by kubectl, and expects each command to do what it is for. */
export interface Person {
  /** Runs `kubectl ARGS`, separated by single spaces, and gives what it printed. Fails when it does. */
  kubectl(args: string, input?: string): Promise<string>;
  /** The same, but gives the words with which it fails. Fails when it does not. */
  refusal(args: string, input?: string): Promise<string>;
  /** `kubectl runtime-enforcer ARGS`. */
  plugin(args: string): Promise<string>;
  /** An object, as kubectl knows it. Undefined when there is none. */
  get(kind: string, name: string): Promise<KubeObject | undefined>;
  /** Waits for an object that holds what the question asks for, and gives the answer. */
  until<Answer>(
    kind: string,
    name: string,
    ask: (object: KubeObject) => Answer | undefined,
    budgetMs?: number,
  ): Promise<Answer>;
  /** `kubectl exec` in a pod, or in one of a workload such as `deployment/web`. Options may stand before a `--`. */
  exec(target: string, ...argv: readonly string[]): Promise<ExecResult>;
}

/** @param namespace that they work in */
export function person({ user }: WholeCluster, namespace: string): Person {
  // kubectl takes no flags before the name of a plugin, and none behind the arguments of exec.
  const run = async ([command = '', ...args]: readonly string[], input?: string): Promise<CommandResult> =>
    await user.kubectl([command, '-n', namespace, ...args], {
      limitMs: COMMAND_LIMIT_MS,
      ...(input !== undefined && { input }),
    });
  const kubectl = async (args: string, input?: string): Promise<string> => {
    const { code, stdout, stderr } = await run(args.split(' '), input);
    assert.equal(code, 0, `kubectl ${args}: ${stderr}${stdout}`);
    return stdout;
  };
  const get = async (kind: string, name: string): Promise<KubeObject | undefined> => {
    const text = await kubectl(`get ${kind} ${name} --ignore-not-found -o json`);
    return text === '' ? undefined : (JSON.parse(text) as KubeObject);
  };
  return {
    kubectl,
    get,
    async refusal(args, input) {
      const { code, stdout, stderr } = await run(args.split(' '), input);
      assert.notEqual(code, 0, `kubectl ${args} was not refused: ${stdout}`);
      return stderr;
    },
    plugin: async (args) => await kubectl(`runtime-enforcer ${args}`),
    async until(kind, name, ask, budgetMs = SEEN_BUDGET_MS) {
      let seen: KubeObject | undefined;
      return await eventually(
        () => `${kind} ${name} holds what is asked for; it is ${JSON.stringify(seen)}`,
        async () => {
          seen = await get(kind, name);
          return seen === undefined ? undefined : ask(seen);
        },
        budgetMs,
      );
    },
    async exec(target, ...argv) {
      const options = argv.includes('--') ? [] : ['--'];
      const { code, stdout, stderr } = await run(['exec', target, ...options, ...argv]);
      return { code, text: `${stdout}${stderr}` };
    },
  };
}
