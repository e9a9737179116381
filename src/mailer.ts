/** One mail, ready to send: the host decides how it travels. */
export interface AuthMail {
  kind: 'activation' | 'password_reset' | 'email_verification' | 'email_change' | 'notice'
  /** Exactly one address. */
  to: string
  /**
   * As stored with the account, in one line. Until the address is proven these are the words of whoever signed up: keep
   * them out of headers and of mails to people who never asked for one.
   */
  name: string | null
  url: string | null
  expiresAt: Date | null
  locale: string
  subject: string
  text: string
  html: string
}

/**
 * What the host implements to send mail; `smtpMailer()` is one over SMTP. Called after the commit and off the response
 * path: how long `send` takes, and how it ends, changes no answer.
 *
 * A promise that resolves says "handed over". A rejection says "not sent": it is tried again, three times in all, unless
 * the error carries the fields of `MailRefusal`. An attempt that takes longer than 120 s is given up and never repeated.
 * Whatever is given up is the event `mail.failed`.
 */
export interface Mailer {
  send(mail: AuthMail): Promise<void>
}

/** What an error of `Mailer.send` may say about itself. */
export interface MailRefusal {
  /** False: another attempt would end the same way. */
  retryable?: boolean
  /** `unknown`: it may have been sent all the same, so another attempt might send it twice. There is none. */
  outcome?: 'unknown'
}

/** What a mail is about. The first four and `account_restored` carry a link; the others are notices. */
export const mailTopics = [
  'activation',
  'password_reset',
  'email_verification',
  'email_change',
  'address_taken',
  'password_changed',
  'email_change_requested',
  'email_changed',
  'email_change_taken',
  'identity_linked',
  'identity_unlinked',
  'mfa_enabled',
  'mfa_replaced',
  'mfa_disabled',
  'recovery_codes_regenerated',
  'recovery_code_used',
  'wrong_codes',
  'account_restored',
  'address_taken_back',
  'admin_granted',
  'admin_revoked',
  'account_taken_over',
] as const

export type MailTopic = (typeof mailTopics)[number]

/** What a template of the host's is given. No value is escaped: that is the template's part. */
export interface TemplateMail {
  topic: MailTopic
  /** In one line; null as long as the address is not proven, since a stranger may have chosen it. */
  name: string | null
  /** In a notice, what undoes the change; null where nothing does. */
  url: string | null
  expiresAt: Date | null
  locale: 'en-US' | 'pt-BR'
  /** The registration key, in `identity_linked` and `identity_unlinked`; in `account_taken_over` of the provider that was linked by it. */
  provider?: string
  /** What was removed, or what is left, in the reader's language: one text each. */
  items?: readonly string[]
  /** True: a code of an authenticator app confirmed the change, so no link undoes it. */
  isFinal?: boolean
  /** True: a recovery code confirmed the change. There is no mail of its own about that code. */
  usedRecoveryCode?: boolean
  /** In `activation`: the signup that the mail belongs to. */
  signup?: { readonly at: Date; readonly browser: string | null }
}

export interface MailText {
  subject: string
  text: string
  html: string
}

/** Topic -> the host's own words instead of ours. One that throws, or returns anything else, is logged and ours is sent. */
export type MailTemplates = { readonly [Topic in MailTopic]?: (mail: TemplateMail) => MailText }
