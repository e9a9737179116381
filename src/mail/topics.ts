import type { AuthMail, MailTopic } from '../mailer'
import { isTextKey, type TextKey } from '../texts/texts'

/** Topics whose mail carries a link. All but `account_restored` are a kind of their own. */
export type LinkTopic = Exclude<AuthMail['kind'], 'notice'> | 'account_restored'

/** Topics whose mail carries a code and no link. */
export type CodeTopic = 'confirmation_code'

/** Topics that tell an owner of something and ask for nothing. */
export type NoticeTopic = Exclude<MailTopic, LinkTopic | CodeTopic>

export interface TopicText {
  readonly subject: TextKey
  /** What happened, a paragraph each. */
  readonly lines: readonly TextKey[]
  /** What to do if it was somebody else. */
  readonly notYou: TextKey
  /** Null: the mail is a notice. */
  readonly button: TextKey | null
}

/** The words of a topic, by their keys. Where nobody has a password, no mail advises to choose one. */
export function wordsOf(topic: MailTopic, hasPasswords: boolean): TopicText {
  const find = (part: 'lead' | 'more' | 'not_you' | 'button') => {
    const keys = [...(hasPasswords ? [] : [`mail.${topic}.${part}_without_password`]), `mail.${topic}.${part}`]
    return keys.find(isTextKey) ?? null
  }
  const lines = [find('lead'), find('more')].filter((key) => key !== null)
  const notYou = !hasPasswords && advisesNewPassword.has(topic) ? 'mail.look_at_once' : (find('not_you') ?? `mail.${topic}.not_you`)
  return { subject: `mail.${topic}.subject`, lines, notYou, button: find('button') }
}

/** Topics that advise a new password and nothing else. */
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
