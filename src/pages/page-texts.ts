import type { LocalizedText } from '../errors'
import type { PageName } from '../page-templates'

export interface PageText {
  title: LocalizedText
  lead: LocalizedText
  /** Over the page's list, where it has one. */
  list?: LocalizedText
  /** A page with a button is a form. */
  button?: LocalizedText
}

export const pageTexts: Readonly<Record<PageName, PageText>> = {
  activate: {
    title: { 'en-US': 'Activate your account', 'pt-BR': 'Ative sua conta' },
    lead: {
      'en-US': 'One more step: confirm that this address is yours, and your account is ready.',
      'pt-BR': 'Só falta um passo: confirme que este endereço é seu, e sua conta estará pronta.',
    },
    button: { 'en-US': 'Activate account', 'pt-BR': 'Ativar conta' },
  },
  activated: {
    title: { 'en-US': 'Your account is active', 'pt-BR': 'Sua conta está ativa' },
    lead: { 'en-US': 'You can sign in now.', 'pt-BR': 'Você já pode entrar.' },
  },
  password_reset: {
    title: { 'en-US': 'Choose a new password', 'pt-BR': 'Escolha uma nova senha' },
    lead: {
      'en-US': 'You will sign in with it from now on, and will be signed out wherever you are signed in today.',
      'pt-BR': 'A partir de agora, você vai entrar com ela. Todas as sessões abertas serão encerradas.',
    },
    button: { 'en-US': 'Save password', 'pt-BR': 'Salvar senha' },
  },
  password_changed: {
    title: { 'en-US': 'Your password was changed', 'pt-BR': 'Sua senha foi alterada' },
    lead: { 'en-US': 'You can sign in with it now.', 'pt-BR': 'Você já pode entrar com ela.' },
  },
  email_verify: {
    title: { 'en-US': 'Confirm your address', 'pt-BR': 'Confirme seu e-mail' },
    lead: { 'en-US': 'Confirm that this email address is yours.', 'pt-BR': 'Confirme que este endereço é seu.' },
    button: { 'en-US': 'Confirm address', 'pt-BR': 'Confirmar e-mail' },
  },
  email_verified: {
    title: { 'en-US': 'Your address is confirmed', 'pt-BR': 'Seu e-mail está confirmado' },
    lead: { 'en-US': 'Thank you. You can close this page.', 'pt-BR': 'Tudo certo. Você já pode fechar esta página.' },
  },
  email_change: {
    title: { 'en-US': 'Use this address from now on', 'pt-BR': 'Use este e-mail a partir de agora' },
    lead: {
      'en-US': 'Your account will have this address instead of the old one.',
      'pt-BR': 'Sua conta passará a ter este endereço no lugar do antigo.',
    },
    button: { 'en-US': 'Use this address', 'pt-BR': 'Usar este e-mail' },
  },
  email_changed: {
    title: { 'en-US': 'Your address was changed', 'pt-BR': 'Seu e-mail foi alterado' },
    lead: { 'en-US': 'You sign in with the new address now.', 'pt-BR': 'Agora você entra com o novo endereço.' },
  },
  second_factor: {
    title: { 'en-US': 'One more step', 'pt-BR': 'Falta um passo' },
    lead: {
      'en-US': 'Enter the code your authenticator app shows, or one of your recovery codes.',
      'pt-BR': 'Digite o código do seu aplicativo autenticador ou um dos seus códigos de recuperação.',
    },
    button: { 'en-US': 'Sign in', 'pt-BR': 'Entrar' },
  },
  challenge_over: {
    title: { 'en-US': 'This took too long', 'pt-BR': 'Demorou demais' },
    lead: { 'en-US': 'Please sign in again.', 'pt-BR': 'Entre novamente.' },
  },
  undo: {
    title: { 'en-US': 'Undo the changes to your account', 'pt-BR': 'Desfazer as alterações da sua conta' },
    lead: {
      'en-US':
        'Your account goes back to this email address. What was added since then is removed, every session ends, and the password stops working.',
      'pt-BR':
        'Sua conta volta a este endereço de e-mail. O que foi adicionado desde então é removido, todas as sessões são encerradas e a senha deixa de funcionar.',
    },
    list: { 'en-US': 'Afterwards you sign in with:', 'pt-BR': 'Depois disso, você entra com:' },
    button: { 'en-US': 'Undo the changes', 'pt-BR': 'Desfazer as alterações' },
  },
  undone: {
    title: { 'en-US': 'Your account is back as it was', 'pt-BR': 'Sua conta voltou a ser como era' },
    lead: {
      'en-US': 'Every session has ended. We sent an email that says how to go on.',
      'pt-BR': 'Todas as sessões foram encerradas. Enviamos um e-mail que explica como continuar.',
    },
    list: { 'en-US': 'You sign in with:', 'pt-BR': 'Você entra com:' },
  },
  undone_without_address: {
    title: { 'en-US': 'Your account is closed for now', 'pt-BR': 'Sua conta está fechada por enquanto' },
    lead: {
      'en-US':
        'The changes were undone, but the account could not get back a way to sign in. We closed it to keep it safe. Please contact our support.',
      'pt-BR':
        'As alterações foram desfeitas, mas não foi possível devolver à conta uma forma de entrar. Ela foi fechada por segurança. Entre em contato com o nosso suporte.',
    },
  },
  link_invalid: {
    title: { 'en-US': 'This link is not valid any more', 'pt-BR': 'Este link não é mais válido' },
    lead: {
      'en-US': 'It was used already, replaced by a newer one, or it has expired. Please ask for a new one.',
      'pt-BR': 'Ele já foi usado, foi substituído por um mais novo ou expirou. Peça um novo.',
    },
  },
  link_refused: {
    title: { 'en-US': 'This account does not accept email links', 'pt-BR': 'Esta conta não aceita links por e-mail' },
    lead: { 'en-US': 'Please ask whoever manages it.', 'pt-BR': 'Fale com quem administra a conta.' },
  },
  address_taken: {
    title: { 'en-US': 'This address belongs to another account', 'pt-BR': 'Este e-mail já é de outra conta' },
    lead: { 'en-US': 'Nothing was changed. Please choose another one.', 'pt-BR': 'Nada foi alterado. Escolha outro.' },
  },
  too_many: {
    title: { 'en-US': 'Please wait a moment', 'pt-BR': 'Aguarde um momento' },
    lead: {
      'en-US': 'There were too many attempts. Try again in a few minutes.',
      'pt-BR': 'Foram muitas tentativas. Tente de novo em alguns minutos.',
    },
  },
  trouble: {
    title: { 'en-US': 'Something went wrong', 'pt-BR': 'Algo deu errado' },
    lead: { 'en-US': 'Please try again in a moment.', 'pt-BR': 'Tente de novo daqui a pouco.' },
  },
}

export const formTexts = {
  newPassword: { 'en-US': 'New password', 'pt-BR': 'Nova senha' },
  confirmPassword: { 'en-US': 'Repeat the password', 'pt-BR': 'Repita a senha' },
  password: { 'en-US': 'Your password', 'pt-BR': 'Sua senha' },
  chosenAtSignup: { 'en-US': 'The one you chose when you signed up.', 'pt-BR': 'A que você escolheu no cadastro.' },
  forgot: { 'en-US': 'I do not know this password', 'pt-BR': 'Não sei esta senha' },
  code: { 'en-US': 'Code', 'pt-BR': 'Código' },
  logIn: { 'en-US': 'Go to sign-in', 'pt-BR': 'Ir para o login' },
} satisfies Record<string, LocalizedText>

export const wrongCode: LocalizedText = {
  'en-US': 'This code is not right, or it was used already. Wait for the next one.',
  'pt-BR': 'Este código não confere ou já foi usado. Aguarde o próximo.',
}
