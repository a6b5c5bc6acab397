import { InvalidRequestError } from '@runtime-enforcer/rpc/rpc-server';

/** The token of the page behind an entry, by the texts that the list is ordered by. */
export function tokenOf(place: readonly string[]): string {
  return JSON.stringify(place);
}

/**
 * The place that a token names; undefined for the first page.
 * @throws InvalidRequestError for a token that no page of such a list has given
 */
export function tokenParts(token: string, length: number): readonly string[] | undefined {
  if (token === '') return undefined;
  let place: unknown;
  try {
    place = JSON.parse(token);
  } catch {
    place = undefined;
  }
  if (Array.isArray(place) && place.length === length && place.every((part) => typeof part === 'string'))
    return place;
  throw new InvalidRequestError(
    'page_token: this is no token of this list; expected next_page_token of the page before, or nothing',
  );
}
