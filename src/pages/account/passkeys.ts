import type { AuthContext } from '../../context'
import type { TextKey } from '../../core/texts/phrase-book'
import { card, type FormState, field, form, type Html, hidden, html, linkButton, type Part, problem, time } from '../../http/html/document'
import { needsScript, passkeyOfForm } from '../../http/html/passkey-form'
import type { Reader } from '../../http/html/reader'
import { queryParameter } from '../../http/locale'
import { listPasskeys } from '../../passkeys/manage'
import type { PublicPasskey } from '../../passkeys/register'
import type { AccountPage } from '../account-page'
import type { AccountVisit } from '../account-visit'
import { FormFault, requireFields } from '../form-fault'
import { Elsewhere } from '../page-lines'

const path = '/account/security'
const sentences: Readonly<Record<string, TextKey>> = {
  EMAIL_NOT_VERIFIED: 'account.verify_first',
  LAST_LOGIN_METHOD: 'passkey.last',
  NOT_FOUND: 'passkey.gone',
  PASSKEY_INVALID: 'passkey.invalid',
  PASSKEY_LIMIT: 'passkey.limit',
  PASSKEY_TAKEN: 'passkey.taken',
}
const isThere = ({ settings }: AuthContext) => settings.passkeysEnabled

/** The page's script fills the form. Without a passkey in it, the page shows why the browser made none. */
export const addPasskey: AccountPage = {
  page: 'addPasskey',
  path: `${path}/passkeys/add`,
  title: 'passkey.add',
  sentences,
  isThere,
  needsFresh: true,
  show: ({ ctx, reader, formOf }, state) => addPasskeyPage(reader, state, { options: `${ctx.prefix}/passkeys/register/options`, formOf }),
  async post({ ask }, { name = '', ...fields }) {
    if ((fields['credential'] ?? '') === '') {
      await ask.passkeyRegistrationOptions() // if the script's request failed, throws the same error
      throw new FormFault({ form: 'passkey.not_made' })
    }
    await ask.registerPasskey({ ...passkeyOfForm(fields), ...(name.trim() !== '' && { name }) })
    return { notice: 'passkey_added', to: path }
  },
}

export const passkeyRenaming: AccountPage = {
  page: 'renamePasskey',
  path: `${path}/passkeys/rename`,
  title: 'passkey.rename_page',
  sentences,
  isThere,
  async show(visit, state) {
    return renamePasskeyPage(visit.reader, state, { passkey: await meantPasskey(visit, state), formOf: visit.formOf })
  },
  async post({ ask }, { id = '', name = '' }) {
    requireFields({ name: name.trim() }, 'name')
    await ask.renamePasskey(id, name)
    return { notice: 'passkey_renamed', to: path }
  },
}

export const passkeyRemoval: AccountPage = {
  page: 'removePasskey',
  path: `${path}/passkeys/remove`,
  title: 'passkey.remove_page',
  sentences,
  isThere,
  needsFresh: true,
  async show(visit, state) {
    return removePasskeyPage(visit.reader, state, { passkey: await meantPasskey(visit, state), formOf: visit.formOf })
  },
  async post({ ask }, { id = '' }) {
    await ask.removePasskey(id)
    return { notice: 'passkey_removed', to: path }
  },
}

/** @throws Elsewhere if the person has no such passkey */
async function meantPasskey({ ctx, req, reader, person }: AccountVisit, { values }: FormState): Promise<PublicPasskey> {
  const id = values['id'] ?? queryParameter(req, 'id', 64)
  const meant = (await listPasskeys(ctx, person.id)).find((passkey) => passkey.id === id)
  if (!meant) throw new Elsewhere({ to: reader.href(path) })
  return meant
}

export interface ListedPasskey {
  readonly id: string
  readonly name: string | null
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

function passkeyName(reader: Reader, { name }: Pick<ListedPasskey, 'name'>): string {
  return name ?? reader.text('passkey.unnamed')
}

/** Oldest first. If this is the first card, `title` is the page's title. */
export function passkeysCard(reader: Reader, passkeys: readonly ListedPasskey[], title: Part): Html {
  return card(
    title,
    html`<h2>${reader.text('passkey.title')}</h2>
<p class="hint">${reader.text('passkey.lead')}</p>
`,
    passkeys.length === 0 ? null : html`<ul class="rows">${passkeys.map((passkey) => row(reader, passkey))}</ul>`,
    linkButton(reader.href('/account/security/passkeys/add'), reader.text('passkey.add'), passkeys.length === 0 ? 'first' : 'second'),
  )
}

function row(reader: Reader, passkey: ListedPasskey): Html {
  const { id, createdAt, lastUsedAt } = passkey
  const name = passkeyName(reader, passkey)
  const used =
    lastUsedAt === null ? reader.text('passkey.never_used') : html`${reader.text('passkey.last_used')} ${time(reader, lastUsedAt)}`
  return html`<li class="row"><div><p><strong>${name}</strong></p>
<p class="hint">${reader.text('passkey.since')} ${time(reader, createdAt)}<br>${used}</p></div>
<p class="links"><a href="${reader.href('/account/security/passkeys/rename', { id })}">${reader.text('passkey.rename', { name })}</a>
<a href="${reader.href('/account/security/passkeys/remove', { id })}">${reader.text('passkey.remove', { name })}</a></p></li>
`
}

/** The script requests the options when the person presses the button: they belong to the session that is fresh then. */
function addPasskeyPage(reader: Reader, state: FormState, { options, formOf }: { options: string; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text('passkey.add')}</h1>
<p class="lead">${reader.text('passkey.add_lead')}</p>
`,
    problem(state),
    form({
      attributes: html` data-passkey="create" data-options-url="${options}" hidden`,
      fields: [
        formOf,
        hidden('credential', ''),
        hidden('challenge_token', ''),
        field(reader, state, {
          name: 'name',
          label: reader.text('passkey.name'),
          hint: reader.text('passkey.name_hint'),
          autocomplete: 'off',
          isOptional: true,
        }),
      ],
      button: reader.text('passkey.add_button'),
    }),
    html`<p class="note" data-unsupported hidden>${reader.text('passkey.unsupported')}</p>`,
    needsScript(reader),
    back(reader),
  )
}

function renamePasskeyPage(reader: Reader, state: FormState, { passkey, formOf }: { passkey: ListedPasskey; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text('passkey.rename', { name: passkeyName(reader, passkey) })}</h1>
`,
    problem(state),
    form({
      fields: [
        formOf,
        hidden('id', passkey.id),
        field(reader, state, {
          name: 'name',
          label: reader.text('passkey.name'),
          autocomplete: 'off',
          value: passkey.name ?? '',
          isFirst: true,
        }),
      ],
      button: reader.text('profile.button'),
    }),
    back(reader),
  )
}

function removePasskeyPage(reader: Reader, state: FormState, { passkey, formOf }: { passkey: ListedPasskey; formOf: Part }): Html {
  const name = passkeyName(reader, passkey)
  return card(
    html`<h1>${reader.text('passkey.remove_title', { name })}</h1>
<p class="lead">${reader.text('passkey.remove_lead')}</p>
`,
    problem(state),
    form({ fields: [formOf, hidden('id', passkey.id)], button: reader.text('passkey.remove', { name }), look: 'danger' }),
    back(reader),
  )
}

function back(reader: Reader): Html {
  return html`<p class="below"><a href="${reader.href('/account/security')}">${reader.text('security.back')}</a></p>
`
}
