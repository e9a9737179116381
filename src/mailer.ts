/** One mail, ready to send: the host decides how it travels. */
export interface AuthMail {
  kind: 'activation' | 'password_reset' | 'email_verification' | 'email_change' | 'email_login' | 'notice'
  /** Exactly one address. */
  to: string
  /**
   * The account's name, in one line. Until the address is verified, an attacker may have chosen it. So keep it out of headers, and
   * out of mails to people who did not request one.
   */
  name: string | null
  url: string | null
  /** In kind `email_login`, where it has one: eight digits. Keep them out of logs. */
  code?: string
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
  /** Asks the server whether it would take a mail, and sends none; `auth.doctor()` calls it. Rejects with what is wrong. */
  verify?(): Promise<void>
}

/** What an error of `Mailer.send` may say about itself. */
export interface MailRefusal {
  /** False: another attempt would end the same way. */
  retryable?: boolean
  /** `unknown`: it may have been sent all the same, so another attempt might send it twice. There is none. */
  outcome?: 'unknown'
}

/** What a mail is about. The first four, `email_login` and `account_restored` carry a link, and `email_login` and `confirmation_code` a code; the others are notices. */
export const mailTopics = [
  'activation',
  'password_reset',
  'email_verification',
  'email_change',
  'email_login',
  'confirmation_code',
  'no_account',
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
  'passkey_added',
  'passkey_removed',
  'wrong_codes',
  'new_device',
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
  /** In one line. Null until the address is verified, because an attacker may have chosen it. */
  name: string | null
  /** In a notice, what undoes the change; null where nothing does. */
  url: string | null
  expiresAt: Date | null
  /** The reader's language; another one than these two only where option `languages` has it. */
  locale: 'en-US' | 'pt-BR' | (string & {})
  /** The registration key, in `identity_linked` and `identity_unlinked`; in `account_taken_over` of the provider that was linked by it. */
  provider?: string
  /** What was removed, or what is left, in the reader's language: one text each. */
  items?: readonly string[]
  /** True: a code of an authenticator app, or a passkey, confirmed the change, so no link undoes it. */
  isFinal?: boolean
  /** True: a recovery code confirmed the change. There is no mail of its own about that code. */
  usedRecoveryCode?: boolean
  /** In `email_login` and `confirmation_code`: eight digits, shown in two groups of four. */
  code?: string
  /** In `no_account`: people may sign up with the address. */
  canSignUp?: boolean
  /** In `activation`: the signup that the mail belongs to. */
  signup?: { readonly at: Date; readonly browser: string | null }
  /** In `new_device`: when, with which browser and from which IP address somebody signed in. Null: not known. */
  login?: { readonly at: Date; readonly browser: string | null; readonly ip: string | null }
}

export interface MailText {
  subject: string
  text: string
  html: string
}

/** Topic -> the host's own words instead of ours. One that throws, or returns anything else, is logged and ours is sent. */
export type MailTemplates = { readonly [Topic in MailTopic]?: (mail: TemplateMail) => MailText }
