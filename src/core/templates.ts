import type { MailTemplates } from './mailer'
export const linkPageNames = [
  'activate',
  'activated',
  'password_reset',
  'password_changed',
  'email_verify',
  'email_verified',
  'email_change',
  'email_changed',
  'email_login',
  'second_factor',
  'challenge_over',
  'undo',
  'undone',
  'undone_without_address',
  'invitation',
  'invitation_used',
  'invitation_kept',
  'invitation_left',
  'link_invalid',
  'link_refused',
  'approval_pending',
  'account_restore',
  'account_restored',
  'address_taken',
  'too_many',
  'trouble',
] as const

export type LinkPageName = (typeof linkPageNames)[number]

export const areaPageNames = [
  'login',
  'signup',
  'checkMail',
  'forgotPassword',
  'mfa',
  'tasks',
  'reauthenticate',
  'signOut',
  'signedOut',
  'account',
  'profile',
  'email',
  'password',
  'connections',
  'removeConnection',
  'security',
  'authenticator',
  'recoveryCodes',
  'turnOffFactor',
  'addPasskey',
  'renamePasskey',
  'removePasskey',
  'devices',
  'deleteAccount',
] as const

export type AreaPageName = (typeof areaPageNames)[number]

export type PageName = LinkPageName | AreaPageName

/** Without the token of the link. The form has no `action`, so the browser posts the form to the address of the page. */
export interface PageInput {
  /** The name of the page. */
  readonly page: LinkPageName
  /** The reader's language. */
  readonly locale: 'en-US' | 'pt-BR' | (string & {})
  /** Why the form is shown again, in the reader's language. Null: the form is shown for the first time. */
  readonly problem: string | null
  /**
   * A list in the reader's language. On `undo` and `undone`: the ways to log in afterwards. On `email_login`: the address that logs in, and
   * where the login was requested. On `email_change` and `email_changed`: the new address. On `account_restore`: when the account is deleted. On
   * `invitation`: who invites, for which address, and until when. Empty on every other page.
   */
  readonly items: readonly string[]
  /**
   * On `invitation`: the signed-in account that the button uses the invitation for. The form then needs a hidden field `form_of`. Null if
   * nobody is signed in, if the invitation is for another address, and on every other page.
   */
  readonly account: {
    /** The address, as plain text. */
    readonly email: string
    /** The value of `form_of`. */
    readonly formOf: string
  } | null
  /** The value of `settings.loginUrl`. Null if a login would not help, for example because the person is already logged in. */
  readonly loginUrl: string | null
  /** On `second_factor`: where the form posts `mfa_token` and `code`. Null on every other page. */
  readonly challenge: {
    /** The address that the form posts to. */
    readonly action: string
    /** The value of `mfa_token`. */
    readonly mfaToken: string
    /** With a field `trust_device` of value `on`, the browser needs no second factor for so many days. Absent: no browser is trusted. */
    readonly trustDays?: number
  } | null
  /**
   * On `activate`, `email_verify`, `email_change` and `email_login`: not null if the form has a field `password` for the account's
   * password. The page asks for the password if nothing else shows that the owner clicked the link. With `canSkip`, the form has a second
   * button (name `forgot`, value `1`). This button is for a person who does not know the password.
   */
  readonly password: {
    /** True: the form also has the second button. */
    readonly canSkip: boolean
  } | null
  /**
   * On `activate`: not null if the person signed up with a passkey in another browser. A script then asks for the passkey, and posts the
   * response as JSON in the field `credential`, with `challenge` in the field `challenge_token`. A second button (name `forgot`, value
   * `1`) activates the account without the passkey, which is then removed.
   */
  readonly passkey: {
    /** The options for `navigator.credentials.get()`. */
    readonly options: object
    /** The value of `challenge_token`. */
    readonly challenge: string
  } | null
  /** The value for the `nonce` of a `<style>`. The page's policy allows no other style. With `passkey`, it allows a `<script>` too. */
  readonly styleNonce: string
}

/** The data of a page of the account area. */
export interface AreaPageInput {
  /** The name of the page. */
  readonly page: AreaPageName
  /** The title, as plain text. */
  readonly title: string
  /** The tag of the reader's language. */
  readonly lang: string
  /** Our own HTML for the body of the page, with forms and messages. */
  readonly body: string
  /** The logged-in person, if the page shows the person. */
  readonly user: {
    /** The address, as plain text. */
    readonly email: string
    /** The name, as plain text. Null: the account has no name. */
    readonly name: string | null
  } | null
  /** The value for the `nonce` of your own `<style>` or `<script>`. */
  readonly nonce: string
}

/** The parts of a layout. `head` and `body` are HTML. All other parts are plain text: escape them, or write them with `html`. */
export interface LayoutInput extends Omit<AreaPageInput, 'page'> {
  /** The name of the page. */
  readonly page: PageName
  /** Our own HTML for the `<head>`: our style sheet and script. */
  readonly head: string
}

/** Returns a whole HTML document. */
export type LayoutTemplate = (parts: LayoutInput) => string

/**
 * Templates by page. The template of a page behind a link returns a whole HTML document. The template of a page of the account area returns
 * only the body of the page. The form of `password_reset` needs the fields `new_password` and `confirm_password`.
 */
export type PageTemplates = { readonly [Name in LinkPageName]?: (page: PageInput) => string } & {
  readonly [Name in AreaPageName]?: (page: AreaPageInput) => string
}

/** The host's templates of mails and pages. */
export interface Templates {
  /** Mails by topic. If a topic is left out, doorward uses its own mail. */
  mails?: MailTemplates
  /** Replaces our look of every page of the account area and of every page that a mailed link opens. */
  layout?: LayoutTemplate
  /** Your template for each page: a whole document, or only the body. If a page is left out, doorward uses its own page. */
  pages?: PageTemplates
}
