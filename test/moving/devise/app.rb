# A small Rails app with Devise and OmniAuth, whose accounts the moving guide moves. Run, it lets people sign up and in, and prints its table:
#
#     DATABASE=old_app ruby app.rb > rows.sql
#
# rows.sql was made by Devise 4.8.1, bcrypt 3.1.18, OmniAuth 2.1.1, Rails 6.1.7.10 and Ruby 3.1.2 (Debian's packages) on PostgreSQL 15.20. Devise 5
# has the same columns, and its encryptor makes the same hashes.
require 'rails'
require 'active_record/railtie'
require 'action_controller/railtie'
require 'action_mailer/railtie'
require 'omniauth-oauth2'

PASSWORD = 'Ärmel & naïve Straße 9'

class OldApp < Rails::Application
  config.load_defaults 6.1
  config.eager_load = false
  config.secret_key_base = 'the secret of the old app, also long'
  config.hosts.clear
  config.paths['config/routes.rb'] = "#{__dir__}/routes.rb"
  config.paths['log'] = '/dev/stderr'
  config.log_level = :error
  config.action_dispatch.show_exceptions = false
  config.action_controller.allow_forgery_protection = false
  config.action_mailer.delivery_method = :test
  config.action_mailer.default_url_options = { host: 'old.example.com' }
end

database = ENV.fetch('DATABASE')
ENV['DATABASE_URL'] = "postgresql://postgres@127.0.0.1/#{database}"
ActiveRecord::Base.establish_connection(ENV['DATABASE_URL'])
ActiveRecord::Schema.verbose = false
require 'devise'
require 'devise/orm/active_record'
Devise.setup do |config|
  config.mailer_sender = 'app@example.com'
  config.pepper = 'a pepper of forty-eight hexadecimal digits'
  config.stretches = 10 # 12 by default; the readers do not care
  config.omniauth :google_oauth2, 'client', 'secret', strategy_class: OmniAuth::Strategies::OAuth2, name: 'google_oauth2'
end

# The columns of `rails generate devise User` with the lines of :confirmable, and those of OmniAuth that Devise's wiki adds.
ActiveRecord::Schema.define do
  create_table :users do |t|
    t.string :email, null: false, default: ''
    t.string :encrypted_password, null: false, default: ''
    t.string :reset_password_token
    t.datetime :reset_password_sent_at
    t.datetime :remember_created_at
    t.string :confirmation_token
    t.datetime :confirmed_at
    t.datetime :confirmation_sent_at
    t.string :unconfirmed_email
    t.string :provider
    t.string :uid
    t.timestamps null: false
  end
  add_index :users, :email, unique: true
  add_index :users, :reset_password_token, unique: true
  add_index :users, :confirmation_token, unique: true
end

class User < ActiveRecord::Base
  devise :database_authenticatable, :registerable, :recoverable, :rememberable, :validatable, :confirmable
  devise :omniauthable, omniauth_providers: [:google_oauth2]

  def self.from_omniauth(auth)
    find_or_create_by!(provider: auth.provider, uid: auth.uid) do |user|
      user.email = auth.info.email
      user.skip_confirmation!
    end
  end

  def password_required?
    provider.nil? && super
  end
end

OldApp.initialize!

class ApplicationController < ActionController::Base
  def who_am_i
    render json: { email: current_user&.email }
  end
end

class CallbacksController < Devise::OmniauthCallbacksController
  def google_oauth2
    auth = request.env['omniauth.auth']
    current_user&.update!(provider: auth.provider, uid: auth.uid)
    sign_in_and_redirect User.from_omniauth(auth)
  end
end

def sign_up(email)
  browser = ActionDispatch::Integration::Session.new(OldApp)
  browser.post '/users', params: { user: { email: email, password: PASSWORD, password_confirmation: PASSWORD } }
  browser
end

def by_google(browser, uid, email)
  OmniAuth.config.mock_auth[:google_oauth2] = OmniAuth::AuthHash.new(provider: 'google_oauth2', uid: uid, info: { email: email })
  browser.post '/users/auth/google_oauth2'
  browser.follow_redirect!
  browser.follow_redirect!
  browser.response.body
end

OmniAuth.config.test_mode = true
OmniAuth.config.request_validation_phase = nil # the browsers here have no page to take a token from
ada = sign_up('Ada@Example.com')
ada.get ActionMailer::Base.deliveries.last.body.to_s[%r{/users/confirmation\?[^"]+}]
ada.post '/users/sign_in', params: { user: { email: 'ada@example.com', password: PASSWORD } }
raise ada.response.body unless by_google(ada, 'google-1', 'ada@gmail.com') == '{"email":"ada@example.com"}'
sign_up('waits@example.com')
raise 'Grace' unless by_google(ActionDispatch::Integration::Session.new(OldApp), 'google-2', 'grace@example.com') == '{"email":"grace@example.com"}'

# Without what psql alone reads, and what is about a whole database.
dump = IO.popen(['pg_dump', '-h', '127.0.0.1', '-U', 'postgres', '--inserts', '--no-owner', '--table=users', database], &:read)
puts dump.lines(chomp: true).reject { |line| line.empty? || line.match?(/^(--|\\|SET |SELECT pg_catalog.set_config)/) }.map { |line| line.gsub('public.', '') }
