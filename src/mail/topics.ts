import type { AuthMail, MailTopic } from '../mailer'
import { isTextKey, type TextKey } from '../texts/texts'

/** Topics whose mail has a link. Each of them except `account_restored` is also a value of `kind`. */
export type LinkTopic = Exclude<AuthMail['kind'], 'notice'> | 'account_restored'

/** Topics whose mail has a code and no link. */
export type CodeTopic = 'confirmation_code'

/** Topics that inform an owner and ask for no action. */
export type NoticeTopic = Exclude<MailTopic, LinkTopic | CodeTopic>

export interface TopicText {
  readonly subject: TextKey
  /** What happened, one paragraph each. */
  readonly lines: readonly TextKey[]
  /** What to do if another person did it. */
  readonly notYou: TextKey
  /** Null if the mail is a notice. */
  readonly button: TextKey | null
}

/** Returns the text keys of a topic. If passwords are off, no mail advises to choose one. */
export function wordsOf(topic: MailTopic, hasPasswords: boolean): TopicText {
  const find = (part: 'lead' | 'more' | 'not_you' | 'button') => {
    const keys = [...(hasPasswords ? [] : [`mail.${topic}.${part}_without_password`]), `mail.${topic}.${part}`]
    return keys.find(isTextKey) ?? null
  }
  const lines = [find('lead'), find('more')].filter((key) => key !== null)
  const notYou = !hasPasswords && advisesNewPassword.has(topic) ? 'mail.look_at_once' : (find('not_you') ?? `mail.${topic}.not_you`)
  return { subject: `mail.${topic}.subject`, lines, notYou, button: find('button') }
}

/** Topics whose only advice is a new password. */
const advisesNewPassword: ReadonlySet<MailTopic> = new Set<MailTopic>([
  'account_restored',
  'new_device',
  'email_change_requested',
  'identity_linked',
  'identity_unlinked',
  'passkey_added',
  'passkey_removed',
  'mfa_disabled',
  'recovery_codes_regenerated',
  'recovery_code_used',
])
