/** The image of every pod's sandbox. */
export const PAUSE_IMAGE = 'test.local/pause:1';
/** Busybox under the names of its applets, each a real file, and the guest programs below /opt/test. */
export const TOOLBOX_IMAGE = 'test.local/toolbox:1';
