import protobuf from 'protobufjs/light.js';
import { descriptor } from './gen/descriptor.ts';

/** Writes and reads the messages of one type. */
export interface MessageCodec<T> {
  encode(value: T): Buffer;
  /** @throws Error that names the message type if `bytes` are not such a message */
  decode(bytes: Uint8Array): T;
}

const TO_OBJECT = { defaults: true, arrays: true, objects: true, longs: BigInt } as const;

let root: protobuf.Root | undefined;

export interface CodecOptions {
  /** What is written is as the wire has it, with no number that is a bigint: it need not be copied before. */
  readonly isExact?: boolean;
}

/**
 * The codec of a message type in its plain form: 64-bit numbers may be given as number or bigint and are read as
 * bigint, enums are numbers, what was not sent has its default, an absent message is null.
 *
 * @param name full name of the message type
 */
export function messageCodec<T extends object>(
  name: string,
  { isExact = false }: CodecOptions = {},
): MessageCodec<T> {
  let known: protobuf.Type | undefined;
  const type = (): protobuf.Type => (known ??= lookupType(name));
  return {
    encode(value) {
      const bytes = type()
        .encode(isExact ? value : type().fromObject(value))
        .finish();
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
    decode(bytes) {
      try {
        return type().toObject(type().decode(bytes), TO_OBJECT) as T;
      } catch (cause) {
        throw new Error(`${bytes.length} bytes are not a valid ${name} message`, { cause });
      }
    },
  };
}

function lookupType(name: string): protobuf.Type {
  if (root === undefined) {
    root = protobuf.Root.fromJSON(descriptor);
    root.resolveAll();
  }
  return root.lookupType(name);
}

/** A codec for values that the plain form is made of and read into. */
export function mappedCodec<Plain extends object, T>(
  name: string,
  toPlain: (value: T) => Plain,
  fromPlain: (plain: Plain) => T,
  options: CodecOptions = {},
): MessageCodec<T> {
  const plain = messageCodec<Plain>(name, options);
  return {
    encode: (value) => plain.encode(toPlain(value)),
    decode: (bytes) => fromPlain(plain.decode(bytes)),
  };
}
