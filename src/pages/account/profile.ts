import type { AccountPage } from '../account-page'
import { profilePage } from './profile-page'

/** Changes the person's name. */
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
