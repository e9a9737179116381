/** Where two processes race for the same rows. */
export const raceTests: readonly string[] = [
  'test/deletion/races.test.ts',
  'test/email-login/races.test.ts',
  'test/local/races.test.ts',
  'test/mailed-codes/races.test.ts',
  'test/mfa/races.test.ts',
  'test/passkeys/races.test.ts',
  'test/server-session/races.test.ts',
  'test/session/races.test.ts',
  'test/social/first-login.test.ts',
  'test/social/link-races.test.ts',
  'test/social/state-races.test.ts',
  'test/store/races.test.ts',
  'test/torture/signup-races.test.ts',
]
