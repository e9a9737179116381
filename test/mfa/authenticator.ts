import { Secret, TOTP } from 'otpauth'
import type { TestClock } from '../support/clock'

/** An authenticator app: another implementation than ours. */
export function authenticator(secret: string, clock: TestClock) {
  const totp = new TOTP({ secret: Secret.fromBase32(secret), digits: 6, period: 30, algorithm: 'SHA1' })
  return {
    /** The code shown `steps` of 30 seconds from now. */
    code: (steps = 0) => totp.generate({ timestamp: clock.now().getTime() + steps * 30_000 }),
    /** Lets half a minute pass, so that there is a code nobody has used, and returns it. */
    nextCode() {
      clock.advance(30)
      return this.code()
    },
  }
}
