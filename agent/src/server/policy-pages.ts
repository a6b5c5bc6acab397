import type { PolicyListPage, PolicyListRequest } from '@runtime-enforcer/rpc/observer-service';
import type { PolicyState } from '../policies/policy-state.ts';
import { fillPage } from './page-limits.ts';
import { tokenOf, tokenParts } from './page-token.ts';
import { reportedPolicy } from './policy-report.ts';

/** The page of policies, ordered by their names, that a request asks for. */
export function policyPage(
  states: ReadonlyMap<string, PolicyState>,
  { pageToken }: PolicyListRequest,
): PolicyListPage {
  const [after = ''] = tokenParts(pageToken, 1) ?? [];
  const behind = Array.from(states)
    .filter(([key]) => key > after)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const { page, full } = fillPage(behind, ([key, state]) => [key, reportedPolicy(state)] as const);
  const last = full ? page.at(-1)?.[0] : undefined;
  return { policies: new Map(page), nextPageToken: last === undefined ? '' : tokenOf([last]) };
}
