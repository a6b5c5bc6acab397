import { expect, it } from 'vitest';
import { eventually } from '../runtime/eventually.ts';
import { gives, type RevocableRights, rightOf } from './revocable-rights.ts';

/** How long something that works may take. */
const WORKS_MS = 4_000;

/** Something that users see, the right without which it fails (see `rightOf`), and whether it works now. */
export type VisibleFunction = readonly [what: string, right: string, works: () => Promise<boolean>];

/** A test for each function: it fails without its right, and works again with it. */
export function testsWithoutOneRight(
  functions: readonly VisibleFunction[],
  rights: () => RevocableRights,
): void {
  it.each(functions)('it is no longer so that %s (%s)', async (_, text, works) => {
    const right = rightOf(text);
    expect(rights().rules.some((rule) => gives(rule, right))).toBe(true);
    await rights().revoke(right);
    expect(await works()).toBe(false);
    await rights().restore();
    expect(await works()).toBe(true);
  });
}

/** What rules give and no function needs: `list pods`. */
export function unneededRights(
  functions: readonly VisibleFunction[],
  { rules }: Pick<RevocableRights, 'rules'>,
): string[] {
  const named = functions.map(([, text]) => rightOf(text));
  return rules.flatMap((rule) =>
    rule.resources.flatMap((resource) =>
      rule.verbs
        .filter((verb) => !named.some((right) => right.resource === resource && right.verbs.includes(verb)))
        .map((verb) => `${verb} ${resource}`),
    ),
  );
}

/** Whether something comes to work in time. */
export async function worksWithin(
  works: () => Promise<boolean> | boolean,
  budgetMs = WORKS_MS,
): Promise<boolean> {
  return await eventually('it works', async () => ((await works()) ? true : undefined), budgetMs).catch(
    () => false,
  );
}
