import type { BindingListPage, BindingListRequest } from '@runtime-enforcer/rpc/observer-service';
import type { ReportedBinding } from '@runtime-enforcer/rpc/reported';
import { InvalidRequestError } from '@runtime-enforcer/rpc/rpc-server';
import { fillPage } from './page-limits.ts';
import { tokenOf, tokenParts } from './page-token.ts';

const NUMBER = /^[0-9]{1,20}$/;

/** The page of bindings, which are in their order, that a request asks for. */
export function bindingPage(
  bindings: readonly ReportedBinding[],
  { pageToken }: BindingListRequest,
): BindingListPage {
  const after = placeOf(pageToken);
  const behind = bindings.filter(
    ({ cgroupId, slot }) =>
      after === undefined || cgroupId > after.cgroupId || (cgroupId === after.cgroupId && slot > after.slot),
  );
  const { page, full } = fillPage(behind, (binding) => binding);
  const last = full ? page.at(-1) : undefined;
  return {
    bindings: page,
    nextPageToken: last === undefined ? '' : tokenOf([String(last.cgroupId), String(last.slot)]),
  };
}

/** @throws InvalidRequestError */
function placeOf(token: string): { readonly cgroupId: bigint; readonly slot: number } | undefined {
  const parts = tokenParts(token, 2);
  if (parts === undefined) return undefined;
  const [cgroupId = '', slot = ''] = parts;
  if (NUMBER.test(cgroupId) && NUMBER.test(slot)) return { cgroupId: BigInt(cgroupId), slot: Number(slot) };
  throw new InvalidRequestError(
    'page_token: this is no place of a binding; expected next_page_token of the page before, or nothing',
  );
}
