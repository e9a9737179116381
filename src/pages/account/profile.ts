import { card, type FormState, field, form, type Html, html, type Part, problem } from '../../http/html/document'
import type { Reader } from '../../http/html/reader'
import type { AccountPage } from '../account-page'

export const profile: AccountPage = {
  page: 'profile',
  path: '/account/profile',
  title: 'profile.title',
  navigation: 'profile.nav',
  isThere: () => true,
  show: ({ reader, person, formOf }, state) => profilePage(reader, state, { name: person.name, formOf }),
  async post({ ask }, { name = '' }) {
    await ask.updateProfile({ name: name === '' ? null : name })
    return { notice: 'profile_saved' }
  },
}

function profilePage(reader: Reader, state: FormState, { name, formOf }: { name: string | null; formOf: Part }): Html {
  return card(
    html`<h1>${reader.text('profile.title')}</h1>
`,
    problem(state),
    form({
      fields: [
        formOf,
        field(reader, state, {
          name: 'name',
          label: reader.text('account.name'),
          autocomplete: 'name',
          value: name ?? '',
          isOptional: true,
          isFirst: true,
        }),
      ],
      button: reader.text('profile.button'),
    }),
  )
}
