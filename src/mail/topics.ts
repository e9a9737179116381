import type { AuthMail, MailTopic } from '../core/mailer'
import { isTextKey, type TextKey } from '../core/texts/texts'

/** Topics with a link in the mail. Each topic except `account_restored` is also a value of `kind`. */
export type LinkTopic = Exclude<AuthMail['kind'], 'notice'> | 'account_restored'

/** Topics with a code and no link in the mail. */
export type CodeTopic = 'confirmation_code'

/** Topics that inform the owner and ask for no action. */
export type NoticeTopic = Exclude<MailTopic, LinkTopic | CodeTopic>

export interface TopicText {
  readonly subject: TextKey
  /** What happened. Each key is a paragraph. */
  readonly lines: readonly TextKey[]
  /** What to do if another person caused the event. */
  readonly notYou: TextKey
  /** The label of the link. Null for notices. */
  readonly button: TextKey | null
}

/** Returns the text keys of a topic. If passwords are off, the texts do not advise the reader to choose a password. */
export function wordsOf(topic: MailTopic, hasPasswords: boolean): TopicText {
  const find = (part: 'lead' | 'more' | 'not_you' | 'button') => {
    const keys = [...(hasPasswords ? [] : [`mail.${topic}.${part}_without_password`]), `mail.${topic}.${part}`]
    return keys.find(isTextKey) ?? null
  }
  const lines = [find('lead'), find('more')].filter((key) => key !== null)
  const notYou = !hasPasswords && advisesNewPassword.has(topic) ? 'mail.look_at_once' : (find('not_you') ?? `mail.${topic}.not_you`)
  return { subject: `mail.${topic}.subject`, lines, notYou, button: find('button') }
}

/** Topics whose only advice is a new password. If passwords are off, the mails of these topics need other advice. */
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
