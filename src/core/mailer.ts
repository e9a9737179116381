/** A mail that is ready to send. The host decides how to send the mail. */
export interface AuthMail {
  kind:
    | 'activation'
    | 'password_reset'
    | 'email_verification'
    | 'email_change'
    | 'email_login'
    | 'device_code'
    | 'invitation'
    | 'account_deletion'
    | 'notice'
  /** A single address. */
  to: string
  /** One line. Until the address is verified, an attacker may have chosen it: keep it out of headers and unrequested mails. */
  name: string | null
  url: string | null
  /** Eight digits, if the mail has a code: in the kinds `email_login` and `device_code`, and beside a link with `mailedCodes`. Keep the digits out of logs. */
  code?: string
  expiresAt: Date | null
  locale: string
  subject: string
  text: string
  html: string
}

/**
 * Sends mail. The host implements this interface, or uses `smtpMailer()`. The mailer is called after the commit, and no response waits for
 * the mailer. Therefore the mailer's time and result never change a response.
 *
 * A resolved promise means that the mail was handed over. A rejection means that the mail was not sent. doorward then tries again for one
 * hour, with growing pauses, and a last time at `drain()`. The fields of `MailRefusal` in the error can end the attempts earlier. If an
 * attempt takes longer than 120 s, doorward gives the mail up and does not repeat the attempt. Every mail that is given up emits the event
 * `mail.failed`. doorward calls `send` for at most `mailConcurrency` mails at once.
 */
export interface Mailer {
  send(mail: AuthMail): Promise<void>
  /** Asks the server whether it would accept a mail, and sends none. `auth.doctor()` calls it. Rejects with the problem. */
  verify?(): Promise<void>
}

/** Optional fields of an error of `Mailer.send`. */
export interface MailRefusal {
  /** False: another attempt would fail in the same way. */
  retryable?: boolean
  /** `unknown`: the mail may have been sent. doorward makes no other attempt, because another attempt could send the mail twice. */
  outcome?: 'unknown'
}

/** The first five, `invitation`, `account_deletion` and `account_restored` can have a link, the first five, `confirmation_code` and `device_code` a code. The rest: notices. */
export const mailTopics = [
  'activation',
  'password_reset',
  'email_verification',
  'email_change',
  'email_login',
  'confirmation_code',
  'device_code',
  'invitation',
  'account_deletion',
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
  'passkey_left_out',
  'wrong_codes',
  'new_device',
  'device_trusted',
  'password_expired',
  'account_restored',
  'address_taken_back',
  'admin_granted',
  'admin_revoked',
  'approval_requested',
  'approval_pending',
  'approval_granted',
  'approval_declined',
  'account_taken_over',
] as const

export type MailTopic = (typeof mailTopics)[number]

/** The data for a host's template. No value is escaped, so the template must escape the values. */
export interface TemplateMail {
  topic: MailTopic
  /** The account's name, in one line. Null until the address is verified, because an attacker may have chosen the name. */
  name: string | null
  /** The link, or null. It undoes the change of a notice. In `no_account`, `address_taken` and `device_trusted`: a page, without an end. */
  url: string | null
  expiresAt: Date | null
  /** The reader's language. Any other value than these two comes from the option `languages`. */
  locale: 'en-US' | 'pt-BR' | (string & {})
  /** In `identity_linked` and `identity_unlinked`: the registration key. In `account_taken_over`: the key of the linked provider. */
  provider?: string
  /**
   * What was removed or what is left, one text an item, in the reader's language. In `email_change`: the new address. In `invitation`: who
   * invites.
   */
  items?: readonly string[]
  /** True: a code of an authenticator app, or a passkey, confirmed the change. In that case no link can undo the change. */
  isFinal?: boolean
  /** True: a recovery code confirmed the change. No other mail reports the use of that code. */
  usedRecoveryCode?: boolean
  /** In `mfa_disabled`: true if an administrator also removed the passkeys. No other mail reports their removal. */
  removedPasskeys?: boolean
  /** In `email_login`, `confirmation_code`, `device_code` and, with `mailedCodes`, beside other links: eight digits, shown in two groups of four. */
  code?: string
  /** Of a code beside a link, which ends before the link. */
  codeExpiresAt?: Date
  /**
   * With a code beside a link: the request. Tell the reader to type the code only at `host`, in that browser. Null: the value is unknown.
   */
  asked?: { readonly at: Date; readonly browser: string | null; readonly host: string | null }
  /** In `no_account`: true if people may sign up with the address. */
  canSignUp?: boolean
  /** In `address_taken`: true if the sign-up had an invitation. Tell the reader where a signed-in person redeems it. */
  hasInvitation?: boolean
  /** In `address_taken`: true if the account waits for its deletion. Tell the reader how to keep it. */
  isLeaving?: boolean
  /** In `activation`: the sign-up that caused the mail. */
  signup?: { readonly at: Date; readonly browser: string | null }
  /** In `new_device`, `device_trusted` and `device_code`: the time, browser and IP address of the login. Null: the value is unknown. */
  login?: { readonly at: Date; readonly browser: string | null; readonly ip: string | null }
}

export interface MailText {
  subject: string
  text: string
  html: string
}

/** The host's templates by topic. If a template throws or returns a wrong value, doorward logs the error and sends its own mail. */
export type MailTemplates = { readonly [Topic in MailTopic]?: (mail: TemplateMail) => MailText }
