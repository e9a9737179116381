import type { AuthMail, Mailer } from '../../src'

/** A mailer that keeps what it is given. */
export interface Mailbox extends Mailer {
  readonly mails: AuthMail[]
  /** The next mail nobody has taken yet that fits; waits for it, since mails travel after the answer. */
  next(fits?: Partial<Pick<AuthMail, 'kind' | 'to'>>): Promise<AuthMail>
}

export function mailbox(): Mailbox {
  const mails: AuthMail[] = []
  const taken = new Set<AuthMail>()
  return {
    mails,
    async send(mail) {
      mails.push(mail)
    },
    async next({ kind, to } = {}) {
      for (let waited = 0; waited < 5_000; waited += 5) {
        const mail = mails.find((one) => !taken.has(one) && (kind ?? one.kind) === one.kind && (to ?? one.to) === one.to)
        if (mail) {
          taken.add(mail)
          return mail
        }
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      throw new Error(`no such mail came; there are ${JSON.stringify(mails.map((mail) => [mail.kind, mail.to]))}`)
    },
  }
}

/** The token of a mailed link. */
export function tokenOf({ url }: Pick<AuthMail, 'url'>): string {
  return new URL(String(url)).pathname.split('/').at(-1) ?? ''
}

/** Where a host's pages would be. */
export const linkTemplates = {
  activationUrlTemplate: 'https://app.example.test/activate/{token}',
  passwordResetUrlTemplate: 'https://app.example.test/reset/{token}',
  emailVerificationUrlTemplate: 'https://app.example.test/verify/{token}',
  emailChangeUrlTemplate: 'https://app.example.test/change/{token}',
}
