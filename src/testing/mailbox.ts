import type { AuthMail, Mailer } from '../core/mailer'

/** Which mails to find. An absent field matches every mail. */
export interface WantedMail {
  kind?: AuthMail['kind']
  to?: string
}

/** A mailer that stores its mails: `createAuthRouter({ mailer: inbox })`. */
export interface Mailbox extends Mailer {
  /** All mails so far. A mail stays in this list after `next` has returned it. */
  readonly mails: AuthMail[]
  /**
   * Returns the oldest matching mail that `next` has not returned before. Waits up to 5 seconds for the mail, because the router sends
   * mails after the response.
   * @throws Error that lists the existing mails, by kind and address
   */
  next(wanted?: WantedMail): Promise<AuthMail>
}

const longestWaitMs = 5_000

export function mailbox(): Mailbox {
  const mails: AuthMail[] = []
  const taken = new Set<AuthMail>()
  const waiting = new Set<() => void>()

  function take({ kind, to }: WantedMail): AuthMail | null {
    const mail = mails.find((one) => !taken.has(one) && (kind ?? one.kind) === one.kind && (to ?? one.to) === one.to)
    if (mail) taken.add(mail)
    return mail ?? null
  }

  return {
    mails,
    async send(mail) {
      mails.push(mail)
      for (const look of [...waiting]) look()
    },
    next: (wanted = {}) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const mail = take(wanted)
          if (mail) settle(() => resolve(mail))
        }
        const settle = (outcome: () => void) => {
          clearTimeout(timer)
          waiting.delete(look)
          outcome()
        }
        const timer = setTimeout(() => settle(() => reject(noSuchMail(wanted, mails))), longestWaitMs)
        waiting.add(look)
        look()
      }),
  }
}

function noSuchMail(wanted: WantedMail, mails: readonly AuthMail[]): Error {
  const there = mails.map(({ kind, to }) => `${kind} to ${to}`).join(', ') || 'none'
  return new Error(`No mail came that fits ${JSON.stringify(wanted)} and was not taken before; there are: ${there}.`)
}

/** Returns the last segment of a mailed link. @throws Error for a mail without a link */
export function linkTokenOf({ url }: Pick<AuthMail, 'url'>): string {
  const token = url === null ? '' : (new URL(url).pathname.split('/').at(-1) ?? '')
  if (token === '') throw new Error('This mail has no link.')
  return token
}

/** A clock that does not move by itself. */
export interface TestClock {
  /** Returns the time of the clock. Pass it to `createAuthRouter({ now })`, and to other code that needs this clock. */
  now(): Date
  /** Moves the clock forward by seconds. */
  advance(seconds: number): void
}

/** A clock that starts at `start` and does not move by itself. @param start default: the time of the call */
export function testClock(start: Date = new Date()): TestClock {
  let instant = start.getTime()
  return {
    now: () => new Date(instant),
    advance(seconds) {
      instant += seconds * 1000
    },
  }
}
