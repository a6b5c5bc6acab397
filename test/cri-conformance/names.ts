/** What critest starts its containers from. */
export const CONFORMANCE_IMAGE = 'test.local/conformance:1';
/** Where the guest has the image as a tar, and critest. */
export const IMAGE_IN_GUEST = '/run/payload/conformance-image.tar';
export const CRITEST_IN_GUEST = '/run/payload/critest';
