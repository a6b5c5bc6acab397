const HEADER_BYTES = 12;
const TYPE_AND_CLASS_BYTES = 4;
const MAX_LABEL_BYTES = 63;
const TYPE_A = 1;
/** A response to a standard query, by a server that also asks others. */
const RESPONSE_FLAGS = 0x8180;
const NO_SUCH_NAME = 3;
/** Where the question's name begins, as a pointer that an answer may have instead of the name. */
const NAME_POINTER = 0xc000 | HEADER_BYTES;
const CLASS_INTERNET = 1;
const LIFETIME_S = 1;
const ADDRESS_BYTES = 4;

/** The one question of a DNS query. */
export interface DnsQuestion {
  readonly id: number;
  /** Lower case, without the dot at its end. */
  readonly name: string;
  /** Whether it asks for IPv4 addresses. */
  readonly isForAddresses: boolean;
  /** As it was asked. */
  readonly bytes: Buffer;
}

/** Reads a query (RFC 1035); undefined for what is none. */
export function dnsQuestion(query: Buffer): DnsQuestion | undefined {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = query[at];
    if (length === undefined || length > MAX_LABEL_BYTES) return undefined;
    at += 1;
    if (length === 0) break;
    labels.push(query.toString('latin1', at, at + length).toLowerCase());
    at += length;
  }
  const end = at + TYPE_AND_CLASS_BYTES;
  if (query.length < end) return undefined;
  return {
    id: query.readUInt16BE(0),
    name: labels.join('.'),
    isForAddresses: query.readUInt16BE(at) === TYPE_A,
    bytes: query.subarray(HEADER_BYTES, end),
  };
}

/**
 * The response to a question.
 *
 * @param addresses IPv4 addresses that the name has; undefined when there is no such name
 */
export function dnsResponse(question: DnsQuestion, addresses: readonly string[] | undefined): Buffer {
  const answers = question.isForAddresses ? (addresses ?? []) : [];
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(question.id, 0);
  header.writeUInt16BE(RESPONSE_FLAGS | (addresses === undefined ? NO_SUCH_NAME : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  return Buffer.concat([header, question.bytes, ...answers.map(addressRecord)]);
}

function addressRecord(address: string): Buffer {
  const record = Buffer.alloc(16);
  record.writeUInt16BE(NAME_POINTER, 0);
  record.writeUInt16BE(TYPE_A, 2);
  record.writeUInt16BE(CLASS_INTERNET, 4);
  record.writeUInt32BE(LIFETIME_S, 6);
  record.writeUInt16BE(ADDRESS_BYTES, 10);
  for (const [index, part] of address.split('.').entries()) record.writeUInt8(Number(part), 12 + index);
  return record;
}
